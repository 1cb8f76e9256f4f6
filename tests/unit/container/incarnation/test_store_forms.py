"""A container's serdes and what its stores hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stores_in_memory_log import CONFIG, Log, storage_of

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation.start_up import require_forms
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.metadata.state_facts import StateFactManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import SystemStream

KEYS = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "job.host-affinity.enabled": "true",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
        "task.class": "m:C",
        "task.inputs": "kafka.in",
        "stores.s.factory": "rocksdb",
        "stores.s.changelog": "kafka.s",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "rec",
        "stores.scratch.factory": "rocksdb",
        "stores.scratch.key.serde": "string",
        "stores.scratch.msg.serde": "rec",
        "serializers.registry.rec.class": "avro",
    }
)
SCHEMA = "serializers.registry.rec.schema"


def job(schema: str, *, standby: bool = False) -> ContainerJob:
    """A container of a job whose values have the Avro schema, or its standby."""
    more = {SCHEMA: json.dumps(schema), "job.hotstandby.enabled": "true"}
    config = KEYS.merged(more)
    model = calculate_job_model(config, {SystemStream("kafka", "in"): 1}, NOTHING)
    return ContainerJob.of(model, ProcessorId("0-0" if standby else "0"))


@pytest.mark.parametrize("standby", [False, True])
def test_the_first_container_writes_down_what_the_next_must_read(
    tmp_path: Path, *, standby: bool
) -> None:
    """Stores with a changelog alone: others live no longer than their container."""
    stream = InMemoryCoordinatorStream()
    storage = storage_of(tmp_path, Log(), CONFIG)
    require_forms(stream, job("int", standby=standby), storage)
    stream.catch_up()
    assert [*StateFactManager(stream).forms()] == ["kafka.s"]
    ((kind, forms),) = storage.forms.items()
    assert (kind, forms[0], forms[1].split()[0]) == ("s", "string", "avro")
    length = len(stream.log)
    require_forms(stream, job("int"), storage)
    assert len(stream.log) == length
    with pytest.raises(ConfigError, match="the values of store 's' were written by avro"):
        require_forms(stream, job("string", standby=standby), storage)
    assert len(stream.log) == length
