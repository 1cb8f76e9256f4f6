"""A container's serdes and what its stores hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_jobs import LOGGED, job_of, store_keys
from stores_in_memory_log import CONFIG, Log, storage_of
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import ConfigError
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation.start_up import require_forms
from homeport.job_coordinator.metadata.state_facts import StateFactManager

KEYS = {
    **LOGGED,
    **store_keys(msg_serde="rec", changelog="kafka.s"),
    **store_keys("scratch", msg_serde="rec"),
    "serializers.registry.rec.class": "avro",
}
SCHEMA = "serializers.registry.rec.schema"


def _job(schema: str, *, standby: bool = False) -> ContainerJob:
    """A container of a _job whose values have the Avro schema, or its standby."""
    return job_of({**KEYS, SCHEMA: json.dumps(schema)}, "0-0" if standby else "0")


@pytest.mark.parametrize("standby", [False, True])
def test_the_first_container_writes_down_what_the_next_must_read(
    tmp_path: Path, *, standby: bool
) -> None:
    """Stores with a changelog alone: others live no longer than their container."""
    stream = InMemoryCoordinatorStream()
    storage = storage_of(tmp_path, Log(), CONFIG)
    require_forms(stream, _job("int", standby=standby), storage)
    stream.catch_up()
    assert [*StateFactManager(stream).forms()] == ["kafka.s"]
    ((kind, forms),) = storage.forms.items()
    assert (kind, forms[0], forms[1].split()[0]) == ("s", "bytes", "avro")
    length = len(stream.log)
    require_forms(stream, _job("int"), storage)
    assert len(stream.log) == length
    with pytest.raises(ConfigError, match="the values of store 's' were written by avro"):
        require_forms(stream, _job("string", standby=standby), storage)
    assert len(stream.log) == length
