"""Broadcast inputs."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.ssp_grouper import broadcast_partitions


@pytest.mark.parametrize(
    "item",
    ["kafka.r", "r#0", "kafka.r#", "kafka.r#-1", "kafka.r#[0]", "kafka.r#[2-1]", "kafka.r#[0-x]"],
)
def test_any_other_form_is_refused(item: str) -> None:
    """The message names the key and the item; a range that ends before it begins is one of them."""
    with pytest.raises(ConfigError) as caught:
        broadcast_partitions(Config({"task.broadcast.inputs": f"kafka.good#0,{item}"}))
    assert str(caught.value).startswith(f"task.broadcast.inputs = {item!r}: ")
