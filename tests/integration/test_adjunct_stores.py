"""Adjunct stores in a real container process, filled from a real broker."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from histories import require_sound
from stream_containers import Job, Make, Running

from homeport.config.errors import StoreError
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.container.rocksdb.rocksdb_view import RocksDbView
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.testing import TestRunner, shared_spark

_PLANES, _AIRLINES = 3000, 50
JOIN = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.planes, self.airlines = context.store("planes"), context.store("airlines")
        self.counts = context.store("counts")

    def process_batch(self, table, collector):
        for tail, airline in zip(*(table.column(c).to_pylist() for c in ("key", "value"))):
            tail, airline = tail.decode(), airline.decode()
            self.counts.put(tail, (self.counts.get(tail) or 0) + 1)
            text = f"{self.planes.get(tail)}/{self.airlines.get(airline)}/{self.counts.get(tail)}"
            collector.send("out", text.encode(), tail.encode())
"""
_KEYS = {
    "task.inputs": "kafka.<job>-in, kafka.<job>-planes",
    "task.broadcast.inputs": "kafka.<job>-airlines#0",
    "task.commit.ms": "200",
    "systems.kafka.streams.<job>-planes.samza.bootstrap": "true",
    "systems.kafka.streams.<job>-airlines.samza.bootstrap": "true",
    **{
        f"stores.{store}.{key}": value
        for store in ("planes", "airlines")
        for key, value in {
            "factory": "rocksdb",
            "key.serde": "string",
            "msg.serde": "string",
            "adstore.input": f"kafka.<job>-{store}",
        }.items()
    },
}


JOBS = {"code": JOIN, "common": _KEYS, "also": {"planes": 2, "airlines": 1}}
"""Of ``make``: two tasks with a part of ``planes`` each, and ``airlines`` for both."""


@pytest.fixture
def job(make: Make) -> Job:
    """A job that looks its planes and airlines up."""
    return make()


def _planes(job: Job, model: str, count: int = _PLANES) -> None:
    records = [(n % 2, b"N%d" % n, f"{model} {n}".encode()) for n in range(count)]
    job.produce(records, "planes")


def _airlines(job: Job, name: str) -> None:
    job.produce([(0, b"A%d" % n, f"{name} {n}".encode()) for n in range(_AIRLINES)], "airlines")


def _fly(job: Job, flights: int) -> None:
    """Each of the first planes flies so often; flight n of plane n is of airline n."""
    places = [n for n in range(_AIRLINES) for _ in range(flights)]
    job.produce([(n % 2, b"N%d" % n, b"A%d" % n) for n in places])


def _seen(job: Job) -> list[str]:
    return [(value or b"").decode() for _, value in job.read(job.topic("out"))]


def _held(job: Job, stores: str = "stores") -> dict[str, dict[str, str]]:
    """{directory: its entries} of the adjunct stores on the disk; nothing has them open."""
    root = job.folder / stores / f"{job.config['job.name']}-1"
    found = {}
    for path in sorted([*root.glob("planes/*"), *root.glob("airlines/*")]):
        view = RocksDbView(path)
        pairs = [(k, v) for k, v in view.scan() if not k.startswith(RESERVED_PREFIX)]
        found[f"{path.parent.name}/{path.name}"] = {k.decode(): v.decode() for k, v in pairs}
        view.close()
    return found


def _expected(model: str, name: str, count: int = _PLANES) -> dict[str, dict[str, str]]:
    parts = {
        f"planes/Partition_{part}": {f"N{n}": f"{model} {n}" for n in range(part, count, 2)}
        for part in (0, 1)
    }
    return {"airlines/container-0": {f"A{n}": f"{name} {n}" for n in range(_AIRLINES)}, **parts}


def _until_seen(job: Job, container: Running, text: str) -> None:
    """One more flight after the other, until one has found ``text``."""

    def is_seen() -> bool:
        before = len(_seen(job))
        job.produce([(0, b"N0", b"A0")])
        job.until(lambda: len(_seen(job)) > before, container)
        return any(value.startswith(text) for value in _seen(job))

    job.until(is_seen, container)


def _has_a_sound_history(job: Job) -> None:
    for folder in sorted(job.folder.glob("stores*")):
        require_sound([folder])


def _log(container: Running) -> str:
    return container.log.read_text(encoding="utf-8")


def _counts_exactly(job: Job) -> None:
    """The flights of each plane are numbered from 1 on, each number once."""
    numbers: dict[str, list[int]] = {}
    for key, value in job.read(job.topic("out")):
        plane = (key or b"").decode()
        numbers.setdefault(plane, []).append(int((value or b"").decode().rpartition("/")[2]))
    for plane, found in numbers.items():
        assert found == list(range(1, len(found) + 1)), plane


def test_reference_data_survives_kill_9(job: Job) -> None:
    """It is there before the first flight, follows its stream, and a restart continues it."""
    _planes(job, "737")
    _airlines(job, "United")
    _fly(job, 2)
    first = job.start(1)
    job.until(lambda: len(_seen(job)) == 2 * _AIRLINES, first)
    assert {value.rpartition("/")[0] for value in _seen(job)} == {
        f"737 {n}/United {n}" for n in range(_AIRLINES)
    }
    _planes(job, "A320")
    _until_seen(job, first, "A320 0/United 0")
    job.until(lambda: bool(job.history("commit")), first)

    # Under load: what was written and not flushed is gone, and is read again.
    _airlines(job, "Untied")
    _fly(job, 20)
    first.stop(signal.SIGKILL)
    second = job.start(2, fence=[1])
    _until_seen(job, second, "A320 0/Untied 0")
    assert _log(second).count("is kept: its stream") == 3
    assert "is filled again" not in _log(second)
    assert second.stop() == 143
    assert _held(job) == _expected("A320", "Untied")
    _counts_exactly(job)
    _has_a_sound_history(job)


def test_a_store_that_is_filled_holds_the_task_that_reads_it_alone(job: Job) -> None:
    """A transaction is open in the part of one task. The other one commits; so do both, later."""
    _airlines(job, "United")
    job.produce([(0, b"N0", b"737 0")], "planes")
    writer = Producer({"bootstrap.servers": job.servers, "transactional.id": job.topic("writer")})
    writer.init_transactions()
    writer.begin_transaction()
    writer.produce(job.topic("planes"), b"737 1", b"N1", partition=1)
    writer.flush()
    job.produce([(n % 2, b"N%d" % (n % 2), b"A0") for n in range(6)])
    container = job.start(1)
    job.until(lambda: job.positions() == {0: 3, 1: 0}, container)
    (part,) = [
        state
        for state in (container.memory.last_report() or ContainerReport()).adjuncts
        if state.remaining is not None
    ]
    assert (part.store, part.task, part.remaining) == ("planes", "Partition 1", 1)
    assert _seen(job) == [f"737 0/United 0/{n}" for n in (1, 2, 3)]
    writer.commit_transaction()
    job.until(lambda: job.positions() == {0: 3, 1: 3}, container)
    assert sorted(_seen(job))[3:] == [f"737 1/United 0/{n}" for n in (1, 2, 3)]
    assert "1 partitions begin; 1 wait for bootstrap streams" in _log(container)
    assert container.stop() == 143
    _has_a_sound_history(job)


@pytest.mark.long
def test_reference_data_comes_to_another_host(job: Job) -> None:
    """On the same host nothing is read again, on another one all of it, before any flight."""
    _planes(job, "A320")
    _airlines(job, "United")
    first = job.start(1)
    _until_seen(job, first, "A320 0/United 0")
    assert first.stop() == 143
    second = job.start(2, fence=[1])
    job.report(second, 2)
    assert f"airlines is read on at 0: {_AIRLINES}" in _log(second)
    assert second.stop() == 143

    _fly(job, 1)
    flights = len(_seen(job))
    third = job.start(3, fence=[2], host="NM2", stores="stores-2")
    job.until(lambda: len(_seen(job)) == flights + _AIRLINES, third)
    assert {value.rpartition("/")[0] for value in _seen(job)} == {
        f"A320 {n}/United {n}" for n in range(_AIRLINES)
    }
    assert _log(third).count("is new: its stream") == 3
    assert third.stop() == 143
    assert _held(job, "stores-2") == _expected("A320", "United")
    _counts_exactly(job)
    _has_a_sound_history(job)


@pytest.mark.long
def test_a_store_of_a_topic_that_was_recreated_is_filled_again(job: Job) -> None:
    """The reason is in the log, and nothing of the topic before is left."""
    _planes(job, "737", 10)
    _airlines(job, "United")
    first = job.start(1)
    _until_seen(job, first, "737 0/United 0")
    assert first.stop() == 143
    job.make_anew("planes", [(n % 2, b"N%d" % n, f"A320 {n}".encode()) for n in range(4)])
    second = job.start(2, fence=[1])
    _until_seen(job, second, "A320 0/United 0")
    assert _log(second).count("planes was recreated: its topic id is") == 2
    assert second.stop() == 143
    assert _held(job) == _expected("A320", "United", 4)


_MANAGERS = (
    JOIN
    + """
from homeport.container.api import AdjunctDataStoreManager, AdjunctDataStoreManagerFactory

class Managers(AdjunctDataStoreManagerFactory):
    def get_adjunct_data_store_manager(
        self, task_name, config, ssps, containers, tasks, should_write, offsets
    ):
        assert should_write == (task_name == "Partition 0")
        return Manager(containers, tasks)

class Manager(AdjunctDataStoreManager):
    def __init__(self, containers, tasks):
        self.planes, self.airlines = tasks.adjunct("planes"), containers.adjunct("airlines")

    def process(self, message):
        text = message.value.decode()
        if message.stream.endswith("-airlines"):
            self.airlines.put(message.key.decode(), text.upper())
        else:
            for tail in message.key.decode().split("+"):
                self.planes.put(tail, text)
        return True
"""
)


def test_a_manager_of_the_jobs_own_fills_the_stores(make: Make) -> None:
    """Several entries of one record, of what two tasks have and what they share; after a kill."""
    job = make(_MANAGERS, adstore_manager_factory="user_job:Managers")
    fleets = [(p, b"+".join(b"N%d" % n for n in range(p, 50, 2)), b"737") for p in (0, 1)]
    job.produce(fleets, "planes")
    _airlines(job, "United")
    _fly(job, 1)
    first = job.start(1)
    job.until(lambda: len(_seen(job)) == _AIRLINES, first)
    assert {value.rpartition("/")[0] for value in _seen(job)} == {
        f"737/UNITED {n}" for n in range(_AIRLINES)
    }
    job.until(lambda: bool(job.history("commit")), first)
    first.stop(signal.SIGKILL)
    job.produce([(0, b"N0+N2", b"A320")], "planes")
    second = job.start(2, fence=[1])
    _until_seen(job, second, "A320/UNITED 0")
    assert _log(second).count("is kept: its stream") == 3
    assert second.stop() == 143
    held = _held(job)
    assert held["airlines/container-0"] == {f"A{n}": f"UNITED {n}" for n in range(_AIRLINES)}
    assert held["planes/Partition_0"] == {
        f"N{n}": "A320" if n in (0, 2) else "737" for n in range(0, 50, 2)
    }
    _counts_exactly(job)
    _has_a_sound_history(job)


_PIPELINE = """
from homeport.container.api import BatchTask


def shouted(frames):
    assert set(frames) == {"flights"}, set(frames)
    return frames["flights"].selectExpr(
        "task", "stream", "partition", "offset", "upper(CAST(key AS STRING)) AS tail")


class Join(BatchTask):
    def init(self, context):
        self.planes = context.store("planes")

    def process_batch(self, table, collector):
        for tail, model in zip(table["tail"], self.planes.get_arrow(table["tail"])):
            collector.send("out", f"{tail.as_py()}/{model.as_py()}".encode())
"""


@pytest.mark.long
def test_a_pipeline_has_the_other_inputs_and_its_task_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a real Spark; a batch of reference data alone does not pass it."""
    (tmp_path / "joined_pipeline.py").write_text(_PIPELINE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = {
        "task.inputs": "kafka.flights, kafka.planes",
        "task.class": "joined_pipeline:Join",
        "task.pipeline.class": "joined_pipeline:shouted",
        "cluster-manager.container.memory.mb": "1536",
        "cluster-manager.container.cpu.cores": "1",
        "systems.kafka.samza.offset.default": "oldest",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "stores.planes.adstore.input": "kafka.planes",
    }
    try:
        with TestRunner(config) as runner:
            runner.send("kafka.planes", key=b"N1", value=b"737")
            assert runner.run() == 1
            runner.send("kafka.flights", key=b"n1", value=b"")
            runner.send("kafka.planes", key=b"N1", value=b"A320")
            runner.send("kafka.planes", key=b"N2", value=b"757")
            runner.run()
            runner.send("kafka.flights", key=b"n2", value=b"")
            runner.run()
            values = [record.value for record in runner.output("kafka.out")]
            assert values == [b"N1/A320", b"N2/757"]
    finally:
        shared_spark.stop()
        sys.modules.pop("joined_pipeline", None)


def _standby(job: Job, epoch: int) -> Running:
    fence = range(1, epoch)
    standby = ProcessorId("0-0")
    return job.start(epoch, fence, processor=standby, host="NM2", stores="stores-2")


def _is_kept(job: Job, expected: dict[str, dict[str, str]]) -> bool:
    """Whether the standby has so much on its disk, where it has the stores open."""
    try:
        return _held(job, "stores-2") == expected
    except StoreError:
        return False  # a store that is about to be made


_ALL_TOLD = {
    ("airlines", "broadcast", _AIRLINES, (_AIRLINES,), 0, True),
    ("planes", "partitioned", _PLANES, (_PLANES,), 0, True),
}


def _told(job: Job, container: Running) -> set[tuple[object, ...]]:
    """What the container reports of each store; at the end whether size and age are known.

    The two parts of ``planes`` have as many records, and so make one.
    """
    found: set[tuple[object, ...]] = set()
    for state in (container.memory.last_report() or ContainerReport()).adjuncts:
        assert state.input == f"kafka.{job.topic(state.store)}"
        at = tuple(state.positions.values())
        is_known = bool(state.bytes) and state.age_seconds is not None
        found.add((state.store, state.kind, state.records, at, state.lag, is_known))
    return found


def test_a_failover_needs_no_bootstrap(make: Make) -> None:
    """A standby fills the stores too: its successor begins with what they hold, and reads on."""
    job = make(job_hotstandby_enabled="true")
    _planes(job, "737")
    _airlines(job, "United")
    active, standby = job.start(1), _standby(job, 1)
    _until_seen(job, active, "737 0/United 0")
    _planes(job, "A320")
    job.until(lambda: _is_kept(job, _expected("A320", "United")), standby)
    lags = (standby.memory.last_report() or ContainerReport()).lags
    assert {lag.store for lag in lags} == {"counts", "planes", "airlines"}
    job.until(lambda: _told(job, active) == _told(job, standby) == _ALL_TOLD, standby)
    active.stop(signal.SIGKILL)
    assert standby.stop() == 143

    job.produce([(0, b"A0", b"Untied 0")], "airlines")
    _fly(job, 1)
    flights = len(_seen(job))
    successor = job.start(2, fence=[1], host="NM2", stores="stores-2")
    job.until(lambda: len(_seen(job)) >= flights + _AIRLINES, successor)
    assert "A320 0/Untied 0" in {value.rpartition("/")[0] for value in _seen(job)}
    log = _log(successor)
    for stream, ends in (("planes", "0: 3000"), ("planes", "1: 3000"), ("airlines", "0: 50")):
        assert f"is kept: its stream kafka.{job.topic(stream)} is read on at {ends}" in log
    assert successor.stop() == 143
    _counts_exactly(job)
    _has_a_sound_history(job)
