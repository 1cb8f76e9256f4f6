"""What a tool takes from its operator's file, and never from the coordinator stream."""

from __future__ import annotations

import re

import pytest

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, Reach, TextKey
from homeport.config.declarations.operators_file import (
    require_of_file,
    require_own_code,
    with_own_places,
)
from homeport.config.errors import ConfigError

REACHING = [key for key in keys.ALL if key.reach not in {Reach.NOTHING, Reach.ACCESS}]
HARMLESS = {
    "job.default.system": "names a system, whose properties are keys of their own",
    "job.non-logged.store.base.dir": "containers alone open it",
    "job.history.dir": "the AM alone opens it; the tool has --history",
    "job.coordinator.factory": "one of our names",
    "job.location-id.provider.factory": "one of our names, read by processors",
    "job.config.rewriter.<name>.class": "rewriters have run when the file was read",
    "job.config.rewriter.<name>.system": "as above",
    "task.checkpoint.factory": "one of our names",
    "task.traces.otlp.endpoint": "containers alone connect to it",
    "systems.<system>.samza.factory": "one of our names",
    "stores.<store>.factory": "one of our names",
    "cluster-manager.jobcoordinator.url.host": "the AM alone listens there",
    "yarn.am.tracking.url": "the AM writes it; docs/security-roles.md has what tools do with it",
    "metrics.reporter.<reporter>.class": "one of our names",
}


def _example(key: Key, value: str) -> tuple[str, str]:
    name = key.named(*["x"] * key.name.count("<"))
    return name, getattr(key, "choices", (value,))[-1:][0] if getattr(key, "choices", ()) else value


@pytest.mark.parametrize("key", REACHING, ids=lambda key: key.name)
def test_run_job_takes_no_program_place_or_class_that_a_tool_has_written(key: Key) -> None:
    """Unless the file has the same; the line names the way out, and no secret."""
    name, value = _example(key, "evil.module:Thing")
    own = Config({name: value})
    require_of_file(own, own)
    require_of_file(own, own.merged({name: f" {value} "}))
    for file in (Config(), Config({name: "another:One"})):
        with pytest.raises(ConfigError, match="from the properties file alone") as refused:
            require_of_file(own, file)
        assert f"homeport config set {name} --delete" in str(refused.value)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "value", ["string", "json", "my-avro", "org.apache.samza.serializers.JsonSerdeFactory"]
)
def test_a_name_of_ours_is_no_class_of_the_jobs_own(value: str) -> None:
    """A serde of ours, or an entry of the registry, imports nothing by itself."""
    written = Config({"systems.kafka.samza.msg.serde": value, "task.commit.ms": "5", "my.key": "a"})
    require_of_file(written, Config())
    require_own_code(written, Config())


@pytest.mark.parametrize("key", REACHING, ids=lambda key: key.name)
def test_a_tool_reaches_out_by_its_file_alone(key: Key) -> None:
    """A place is the file's, or none; code that the file does not name is refused."""
    name, value = _example(key, "evil.module:Thing")
    recorded = Config({name: value, "job.name": "j"})
    here = with_own_places(recorded, Config({"job.name": "other"}))
    assert here["job.name"] == "j"
    assert (name in here) is (key.reach is not Reach.PLACE)
    assert with_own_places(Config(), recorded).get(name) == here.get(name, value) or name in here
    if key.reach is Reach.PLACE:
        assert with_own_places(recorded, Config({name: "own"}))[name] == "own"
        require_own_code(recorded, Config())
        return
    require_own_code(recorded, recorded)
    with pytest.raises(ConfigError, match="what the stream alone names") as refused:
        require_own_code(recorded, Config())
    assert refused.value.key == name
    with pytest.raises(ConfigError, match="the properties file another one"):
        require_own_code(recorded, Config({name: "another:One"}))
    require_own_code(recorded, Config(), keys.JOB_NAME)


def test_each_key_that_sounds_like_a_place_or_a_class_is_one_or_says_why_not() -> None:
    """So that a new key is not forgotten."""
    sounds = re.compile(
        r"[.](?:class|factory|path|url|file|keytab|principal|executable|archive|connect|endpoint|"
        r"dir|host|system|sql|password|username|servers|<property>)$"
    )
    for key in keys.ALL:
        if isinstance(key, TextKey) and sounds.search(key.name) and not key.choices:
            is_named = key.name in HARMLESS
            known = {"job.coordinator.system", "job.changelog.system", "task.checkpoint.system"}
            known |= {"job.config.rewriter.<name>.config.<property>"}
            known |= {"job.config.rewriter.<name>.<property>"}
            known |= {"stores.<store>.changelog.kafka.<property>"}
            assert (key.reach is not Reach.NOTHING) is not (is_named or key.name in known), key.name
