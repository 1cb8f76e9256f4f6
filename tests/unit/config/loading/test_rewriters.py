"""Rewriters: in their order, above file and overrides."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.loading.loader import load
from homeport.config.loading.rewriters import rewritten

ENVIRONMENT = "org.apache.samza.config.EnvironmentConfigRewriter"
TOPICS = "org.apache.samza.config.RegExTopicGenerator"

MODULE = """
class Adds:
    def rewrite(self, name, config):
        return {**config, "said.by": name, "before": config.get("a", "")}

class Fails:
    def rewrite(self, name, config):
        raise KeyError("no\\nsuch")

class Exits:
    def rewrite(self, name, config):
        raise SystemExit

class Refuses:
    def rewrite(self, name, config):
        from homeport.config.errors import ConfigError
        raise ConfigError("my.prefix", None, "it is required", "set it")

class Wrong:
    def rewrite(self, name, config):
        return {"a": 1}
"""


def _topics(_config: Config, system: str) -> Collection[str]:
    return {"k": ("b.clicks", "a-clicks", "clicks-old", "views", "__clicks")}[system]


def _config(name: str, kind: str, **more: str) -> Config:
    return Config({"job.config.rewriters": name, f"job.config.rewriter.{name}.class": kind, **more})


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with rewriters, on PYTHONPATH."""
    (tmp_path / "my_rewriters.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "exiting_rewriters.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "my_rewriters"


@pytest.mark.parametrize("kind", ["environment", ENVIRONMENT])
def test_the_environment_stands_above_the_file(kind: str) -> None:
    """SAMZA_A_B is the key a.b; other variables are ignored."""
    config = _config("env", kind, **{"a.b": "file", "c": "file"})
    found = rewritten(
        config, {"SAMZA_A_B": "x", "SAMZA_NEW": "y", "HOME": "/h", "SAMZA_": "z"}, None
    )
    assert found == config.merged({"a.b": "x", "new": "y"})


def test_a_variable_cannot_mean_a_key_in_mixed_case() -> None:
    """Which of the two would be read is not for us to guess."""
    config = _config("env", "environment", **{"task.myKey": "file"})
    with pytest.raises(ConfigError, match=r"SAMZA_TASK_MYKEY of the environment means task\.mykey"):
        rewritten(config, {"SAMZA_TASK_MYKEY": "x"}, None)


@pytest.mark.parametrize("kind", ["regex-topics", TOPICS])
def test_topics_that_match_are_inputs(kind: str) -> None:
    """Whole names match; what the file says of one stream wins over what is said of all."""
    own = "job.config.rewriter.re."
    config = _config(
        "re",
        kind,
        **{
            "task.inputs": "k.views",
            f"{own}regex": ".*clicks",
            f"{own}system": "k",
            f"{own}config.samza.offset.default": "oldest",
            "systems.k.streams.a-clicks.samza.offset.default": "upcoming",
        },
    )
    found = rewritten(config, {}, _topics)
    assert found == config.merged(
        {
            "task.inputs": "k.a-clicks,k.b.clicks,k.views",
            "systems.k.streams.b.clicks.samza.offset.default": "oldest",
        }
    )


def test_without_kafka_topics_are_left_out() -> None:
    """A tool that needs no inputs need not wait for Kafka."""
    config = _config("re", "regex-topics")
    assert rewritten(config, {}, None) == config


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({}, "regex is missing"),
        ({"regex": "x"}, "system is missing"),
        ({"regex": "(", "system": "k"}, "it is no regular expression"),
        (
            {"regex": "vi.*", "system": "k"},
            r"it matches k\.views, which task\.inputs names already",
        ),
    ],
)
def test_a_bad_expression_is_refused(more: dict[str, str], rule: str) -> None:
    """The error names the wrong property of the rewriter."""
    named = {f"job.config.rewriter.re.{key}": value for key, value in more.items()}
    config = _config("re", "regex-topics", **{"task.inputs": "k.views", **named})
    with pytest.raises(ConfigError, match=rule):
        rewritten(config, {}, _topics)


def test_the_jobs_own_are_applied_in_order(module: str) -> None:
    """Each gets its name and what those before it made."""
    config = Config(
        {
            "job.config.rewriters": "env,mine",
            "job.config.rewriter.env.class": "environment",
            "job.config.rewriter.mine.class": f"{module}:Adds",
        }
    )
    found = rewritten(config, {"SAMZA_A": "from the environment"}, None)
    assert (found["said.by"], found["before"]) == ("mine", "from the environment")


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("", "is missing"),
        ("org.acme.Rewriter", "no such rewriter is known"),
        ("no_such_module_here:R", "it fails \\(ModuleNotFoundError"),
        ("my_rewriters:Missing", "it fails \\(AttributeError"),
        ("my_rewriters:Fails", "it fails \\(KeyError: 'no.*such'\\)"),
        ("my_rewriters:Exits", "it fails \\(SystemExit\\)"),
        ("exiting_rewriters:R", "it fails \\(SystemExit: 0\\)"),
        ("my_rewriters:Wrong", "must return a mapping of text to text"),
    ],
)
@pytest.mark.usefixtures("module")
def test_an_unusable_rewriter_gives_one_line(kind: str, rule: str) -> None:
    """Key, value, rule and remedy, without a traceback."""
    with pytest.raises(ConfigError, match=rule) as caught:
        rewritten(_config("mine", kind), {}, None)
    assert str(caught.value).startswith("job.config.rewriter.mine.class ")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("module")
def test_an_error_of_the_jobs_own_rewriter_is_reported_unchanged() -> None:
    """Its ConfigError is the user's one line already."""
    with pytest.raises(ConfigError, match=r"my\.prefix is missing: it is required"):
        rewritten(_config("mine", "my_rewriters:Refuses"), {}, None)


def test_the_loader_applies_them_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, then overrides, then rewriters."""
    monkeypatch.setenv("SAMZA_A", "environment")
    file = tmp_path / "p"
    file.write_text(
        "a=file\nb=file\njob.config.rewriters=e\njob.config.rewriter.e.class=environment\n",
        encoding="utf-8",
    )
    loaded = load(str(file), ["a=override", "b=override"])
    assert (loaded["a"], loaded["b"]) == ("environment", "override")
