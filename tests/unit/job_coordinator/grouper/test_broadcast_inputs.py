"""Broadcast inputs."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.broadcast_inputs import broadcast_partitions
from homeport.job_coordinator.model.job_model import SystemStreamPartition


def test_one_partition_and_a_range() -> None:
    """A number, and a range with both ends; the first dot ends the system's name."""
    config = Config({"task.broadcast.inputs": "kafka.rules.v1#2, other.r#[0-1]"})
    assert broadcast_partitions(config) == {
        SystemStreamPartition("kafka", "rules.v1", 2),
        SystemStreamPartition("other", "r", 0),
        SystemStreamPartition("other", "r", 1),
    }


def test_none() -> None:
    """Without the key nothing is broadcast."""
    assert broadcast_partitions(Config()) == frozenset()


@pytest.mark.parametrize(
    "item",
    ["kafka.r", "r#0", "kafka.r#", "kafka.r#-1", "kafka.r#[0]", "kafka.r#[2-1]", "kafka.r#[0-x]"],
)
def test_any_other_form_is_refused(item: str) -> None:
    """The message names the key and the item; a range that ends before it begins is one of them."""
    with pytest.raises(ConfigError) as caught:
        broadcast_partitions(Config({"task.broadcast.inputs": f"kafka.good#0,{item}"}))
    assert str(caught.value).startswith(f"task.broadcast.inputs = {item!r}: ")
