"""One container's view of a JobModel."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.container.runtime.job import ContainerJob
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)

KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.class": "m:C",
    "task.inputs": "elsewhere.in",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
    "systems.elsewhere.consumer.bootstrap.servers": "b:1",
    "systems.twin.producer.bootstrap.servers": "a:1",
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.log",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "json",
}


def _view(over: Mapping[str, str], mode: TaskMode = TaskMode.ACTIVE) -> ContainerJob:
    ssp = SystemStreamPartition("elsewhere", "in", 0)
    task = TaskModel(TaskName("Partition 0"), (ssp,), 0, mode)
    container = ContainerModel(ProcessorId("0"), {task.task_name: task})
    config = Config({**KEYS, **over})
    return ContainerJob.of(JobModel(config, {ProcessorId("0"): container}), ProcessorId("0"))


def test_it_knows_which_systems_a_transaction_reaches() -> None:
    """Those with the brokers of the checkpoints; input may come from anywhere.

    So may outputs go anywhere where they are no part of the transaction.
    """
    view = _view({})
    assert sorted(view.systems) == ["elsewhere", "kafka", "twin"]
    assert view.transaction_systems == {"kafka", "twin"}
    assert view.transaction_system.name == "kafka"
    assert view.output_systems == view.transaction_systems
    assert _view({"task.exactly.once": "false"}).output_systems == {"elsewhere", "kafka", "twin"}
    assert [serde.name for serde in view.serdes(view.stores[0])] == ["string", "json"]


def test_what_a_container_cannot_do_is_refused() -> None:
    """Each with its key."""
    for over, key in (
        ({"stores.s.changelog": "elsewhere.log"}, r"stores\.s\.changelog"),
        ({"stores.s.key.serde": "m:S"}, r"stores\.s\.key\.serde"),
    ):
        with pytest.raises(ConfigError, match=key):
            _view(over)
    with pytest.raises(ConfigError, match=r"job\.hotstandby\.enabled"):
        _view({}, TaskMode.STANDBY)


def test_an_unknown_processor_is_refused() -> None:
    """With those that the JobModel has."""
    with pytest.raises(ConfigError, match="it has none"):
        ContainerJob.of(JobModel(Config(KEYS), {}), ProcessorId("5"))
