"""Which systems a job cannot begin without."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.used_systems import declared_outputs, used_systems
from homeport.config.system_stream import SystemStream

KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "job.coordinator.system": "coordination",
    "task.inputs": "first.in,second.in,first.more",
    "task.broadcast.inputs": "rules.all#0",
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.log",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "string",
    "stores.scratch.factory": "rocksdb",
    "stores.scratch.key.serde": "string",
    "stores.scratch.msg.serde": "string",
    "systems.unused.consumer.bootstrap.servers": "away:1",
}


def test_a_declared_system_that_nothing_names_is_none_of_them() -> None:
    """Coordinator stream, inputs, broadcast ones, changelogs and transactions; each once."""
    assert used_systems(Config(KEYS)) == ("coordination", "first", "second", "rules", "kafka")
    assert used_systems(Config({**KEYS, "task.checkpoint.factory": "none"}))[-1] == "kafka"


def test_dead_letters_are_an_output_that_is_known() -> None:
    """A record that cannot be read would wait for their brokers."""
    keys = {
        "task.dead.letter.stream": "letters.dead",
        "task.drop.deserialization.errors": "true",
        "task.exactly.once": "false",
    }
    assert used_systems(Config({**KEYS, **keys}))[-1] == "letters"


def test_outputs_of_the_task_are_known_and_have_a_system() -> None:
    """One without a system is refused in one line."""
    given = {**KEYS, "task.outputs": "results.totals, kafka.more"}
    assert used_systems(Config(given))[-1] == "results"
    assert declared_outputs(Config(given))[-1] == ("task.outputs", SystemStream("kafka", "more"))
    with pytest.raises(ConfigError, match=r"task\.outputs = 'totals': .* form system\.stream"):
        declared_outputs(Config({**KEYS, "task.outputs": "totals"}))
