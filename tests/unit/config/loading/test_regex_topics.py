"""Topics that match a regular expression of a job: those that are new become inputs."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.config.loading.regex_topics import new_inputs, with_inputs, with_matching
from homeport.config.system_stream import SystemStream

_CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "k",
        "task.inputs": "k.b, k.a",
        "task.broadcast.inputs": "k.a-all#0",
        "systems.k.streams.a-set.samza.offset.default": "upcoming",
        "job.config.rewriters": "env, one, two, gone",
        "job.config.rewriter.env.class": "environment",
        "job.config.rewriter.one.class": "regex-topics",
        "job.config.rewriter.one.system": "k",
        "job.config.rewriter.one.regex": "a.*",
        "job.config.rewriter.one.config.samza.offset.default": "oldest",
        "job.config.rewriter.two.class": "org.apache.samza.config.RegExTopicGenerator",
        "job.config.rewriter.two.system": "l",
        "job.config.rewriter.two.regex": "c",
    }
)


def _streams(*names: str) -> list[SystemStream]:
    return [SystemStream(*name.split(".")) for name in names]


def test_new_is_what_matches_and_is_no_input_yet() -> None:
    """Each rewriter by expression adds its topics, in order; broadcast inputs are inputs, too."""
    topics = {"k": ("a", "a-set", "a-all", "a-new", "c", "__a"), "l": ("c", "a")}
    found = new_inputs(_CONFIG, lambda _, system: topics[system])
    assert list(found) == _streams("k.a-new", "k.a-set", "l.c")
    assert [pattern.name for pattern in found.values()] == ["one", "one", "two"]
    assert with_inputs(_CONFIG, found) == _CONFIG.merged(
        {
            "task.inputs": "k.a,k.a-new,k.a-set,k.b,l.c",
            "systems.k.streams.a-new.samza.offset.default": "oldest",
        }
    )


def test_streams_of_a_model_are_inputs_where_they_match() -> None:
    """A processor that was started before they came reads them as the others do."""
    found = with_matching(_CONFIG, _streams("k.a-new", "k.other", "l.a", "k.a"))
    assert found == _CONFIG.merged(
        {"task.inputs": "k.a,k.a-new,k.b", "systems.k.streams.a-new.samza.offset.default": "oldest"}
    )
    assert with_matching(_CONFIG, _streams("k.a", "k.b")) is _CONFIG
