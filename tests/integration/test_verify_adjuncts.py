"""``homeport state verify`` of stores with versions, and of those of a job's own manager."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from operators import Operator
from recorded_jobs import record_job
from stream_containers import Job, Running, make_job

from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore

_JOB = """
from homeport.container.api import (
    AdjunctDataStoreManager, AdjunctDataStoreManagerFactory, BatchTask
)

class Counter(BatchTask):
    def process_batch(self, table, collector):
        pass

class Managers(AdjunctDataStoreManagerFactory):
    def get_adjunct_data_store_manager(
        self, task_name, config, ssps, container_stores, task_stores, writes_container_stores,
        offset_manager,
    ):
        return Manager(task_stores.adjunct("planes"), container_stores.adjunct("codes"))

class Manager(AdjunctDataStoreManager):
    def __init__(self, planes, codes):
        self.planes, self.codes = planes, codes

    def process(self, message):
        store = self.planes if message.stream.endswith("planes") else self.codes
        for key in message.key.split(","):
            store.put(key.upper(), message.value)
        return True
"""
_KEYS = {
    "task.inputs": "kafka.<job>-in, kafka.<job>-planes",
    "task.broadcast.inputs": "kafka.<job>-codes#[0-1]",
    "task.commit.ms": "100",
    "stores.codes.adstore.version.marker.header": "version",
    **{
        key.replace("<s>", store): value.replace("<s>", store)
        for store in ("planes", "codes")
        for key, value in {
            "stores.<s>.factory": "rocksdb",
            "stores.<s>.key.serde": "string",
            "stores.<s>.msg.serde": "string",
            "stores.<s>.adstore.input": "kafka.<job>-<s>",
            "systems.kafka.streams.<job>-<s>.samza.bootstrap": "true",
            "systems.kafka.streams.<job>-<s>.samza.key.serde": "string",
            "systems.kafka.streams.<job>-<s>.samza.msg.serde": "string",
        }.items()
    },
}


def _made(kafka: str, folder: Path, *, has_manager: bool) -> Operator:
    own = {"adstore.manager.factory": "user_job:Managers"} if has_manager else {}
    also = {"planes": 2, "codes": 2}
    job = make_job(kafka, folder, _JOB, {**_KEYS, **own}, also, policy="delete")
    with job.coordinator_stream() as stream:
        record_job(stream, job.model)
    return Operator(job, folder / "job.properties")


@pytest.fixture(params=[False, True], ids=["versions", "own manager"])
def operator(request: pytest.FixtureRequest, kafka: str, tmp_path: Path) -> Iterator[Operator]:
    """A job with a store of two partitions in versions, and one without; its classes are known."""
    made = _made(kafka, tmp_path, has_manager=request.param)
    package = str(made.job.folder / "package")
    sys.path.append(package)
    yield made
    sys.path.remove(package)
    made.job.close()


def _code(job: Job, number: int, value: str, *keys: str) -> None:
    """A version: keys go to both partitions in turns."""
    for partition in (0, 1):
        for word in ("begin", "end"):
            headers = [("version", f"{word} {number}".encode())]
            job.produce([(partition, b"", b"")], "codes", headers)
            if word == "begin":
                own = [(partition, k.encode(), value.encode()) for k in keys[partition::2]]
                job.produce(own, "codes")


def _rows(operator: Operator, *words: str) -> dict[str, Any]:
    """{directory: what verify says of it}, of all adjunct stores."""
    rows = [
        row
        for store in ("codes", "planes")
        for row in operator.objects("state", "verify", "--store", store, *words)
    ]
    return {row["path"].rpartition("-1/")[2]: row for row in rows}


def _served(operator: Operator, version: int) -> bool:
    rows = [row for row in operator.objects("state", "ls") if "input" in row]
    return {"codes": version, "planes": None} == {
        row["store"]: row["version"] for row in rows if row["behind"] == 0
    }


def _started(operator: Operator) -> Running:
    container = operator.job.start(1)
    operator.job.report(container, 1)
    return container


def test_stores_with_versions_and_managed_ones_are_compared(operator: Operator) -> None:
    """The version that tasks see, with its own records alone; what is changed by hand is found."""
    job = operator.job
    _code(job, 7, "old", "a", "b", "c", "d", "e", "f")
    _code(job, 8, "new", "a", "b", "c", "d")
    job.produce([(0, b"p0", b"737"), (1, b"p1,q1", b"A320"), (0, b"p0", b"738")], "planes")
    container = _started(operator)
    job.until(lambda: _served(operator, 8), container)
    headers = [("version", b"begin 9")]
    job.produce([(0, b"", b"")], "codes", headers)
    job.produce([(0, b"a", b"newest")], "codes")
    job.until(lambda: _served(operator, 8), container)
    managed = "adstore.manager.factory" in job.config
    found = _rows(operator)
    assert {name: (row["is_equal"], row["compared"]) for name, row in found.items()} == {
        "codes/container-0": (True, 4),
        "planes/Partition_0": (True, 1),
        "planes/Partition_1": (True, 2 if managed else 1),
    }
    assert found["codes/container-0"]["undecided"] == 0
    assert container.stop() == 143

    other, gone = (b"A", b"B") if managed else (b"a", b"b")
    path = operator.directory / "codes" / "container-0" / "v8"
    store = RocksDbStore(path, RocksDbMemory(8 << 20, 1))
    store.write({other: b"old", b"z": b"new", gone: None}, None)
    store.flush()
    store.close()
    done = operator.call("state", "verify", "--store", "codes")
    assert done.returncode == 1
    assert "3 DIFFERENT; 5 keys compared with" in done.stdout
    for key, how in ((other, "another value"), (gone, "missing here"), (b"z", "only here")):
        assert f"  {key.decode()}: {how}" in done.stdout
