"""The values of a store get other schemas on a real YARN cluster, by upgrades and by run-job."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from failover_scenarios import Feed
from standby_jobs import standby_job
from topic_records import committed
from yarn_jobs import KEYS, PARTITIONS, Job, wait_for

_TASK = """
import json
from pathlib import Path

from homeport.container.api import BatchTask

SCHEMA = json.loads(Path(__file__).with_name("count.avsc").read_text())
EMPTY = {field["name"]: 0 for field in SCHEMA["fields"]}

def with_unit(value):
    return {**value, "unit": 5}

class Evolving(BatchTask):
    def init(self, context):
        self.store, self.changed = context.store("counts"), {}
        self.out = context.config["job.name"] + "-out"

    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            value = self.store.get(key.decode()) or EMPTY
            self.changed[key] = {**value, "n": value["n"] + 1}
            self.store.put(key.decode(), self.changed[key])

    def end_transaction(self, collector):
        for key, value in self.changed.items():
            collector.send(self.out, json.dumps(value).encode(), key)
        self.changed.clear()
"""
_MARK = b"\xc3\x01"


def package(job: Job, folder: Path, name: str, *fields: tuple[str, str, int | None]) -> Path:
    """The code with a schema of these fields: name, type, default."""
    made = folder / name
    shutil.copytree(job.package, made, dirs_exist_ok=True)
    (made / "evolving.py").write_text(_TASK)
    parts = [
        {"name": field, "type": kind} | ({} if default is None else {"default": default})
        for field, kind, default in fields
    ]
    schema = {"type": "record", "name": "Count", "fields": parts}
    (made / "count.avsc").write_text(json.dumps(schema))
    return made


def values(job: Job) -> dict[str, list[dict[str, int]]]:
    """{key: the values that were sent for it, in their order}."""
    found: dict[str, list[dict[str, int]]] = {}
    for record in committed(job.servers, f"{job.name}-out", PARTITIONS):
        key = (record.key() or b"").decode()
        found.setdefault(key, []).append(json.loads(record.value() or b""))
    return found


def _counts(job: Job) -> Counter[str]:
    return Counter({key: sent[-1]["n"] for key, sent in values(job).items()})


def _kill_a_container(job: Job) -> None:
    """SIGKILL, while records come; its standby takes over, or it comes home."""
    pid = job.settled()["0"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: job.pids().get("0") not in {None, pid}, job)
    job.wait_until_running()


@pytest.mark.long
def test_an_upgrade_gives_values_a_field_and_its_way_back_takes_it(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """Each record counts once, over two SIGKILLs; old values have the default, and no code fails.

    What is not read, by the new code or by the one that runs, is refused before the upgrade begins.
    A wider type comes by run-job alone; then the former code is refused.
    """
    job = standby_job(make_job, "schemas", containers=1)
    first = package(job, tmp_path, "one", ("n", "int", None))
    job.values |= {
        "task.class": "evolving:Evolving",
        "yarn.package.path": str(first),
        "stores.counts.msg.serde": "count",
        "serializers.registry.count.class": "avro",
        "serializers.registry.count.schema.file": "count.avsc",
    }
    admin = AdminClient({"bootstrap.servers": job.servers})
    topic = f"{job.name}-out"
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    job.produce(KEYS)
    job.run()
    job.wait_until_running()
    wait_for(lambda: _counts(job).total() == KEYS, job)

    for name, fields, rule in (
        ("wide", [("n", "long", None)], "which does not read it; field n: long is no int"),
        ("required", [("n", "int", None), ("seen", "int", None)], "were written by avro"),
    ):
        new = package(job, tmp_path, name, *fields)
        refused = job.operator("upgrade", f"--package={new}", limit_s=240)
        assert refused.returncode == 1
        assert rule in refused.stderr
        assert "of store 'counts'" in refused.stderr
    assert job.get("v1/status")["upgrade"] is None

    feed = Feed(job)
    feed.go_on()
    try:
        two = package(job, tmp_path, "two", ("seen", "int", 7), ("n", "int", None))
        done = job.operator("upgrade", f"--package={two}", "--watch-ms=1000", limit_s=240)
        assert done.returncode == 0, done.stdout + done.stderr
        wait_for(lambda: any(sent[-1].get("seen") == 7 for sent in values(job).values()), job)
        _kill_a_container(job)
        undone = job.operator("upgrade", "--undo", limit_s=240)
        assert undone.returncode == 0, undone.stdout + undone.stderr
        _kill_a_container(job)
    finally:
        fed = feed.stop()
        job.produced.update(f"key {number % KEYS}" for number in range(fed))
    _is_exact(job)
    assert all(set(sent[-1]) == {"n"} for sent in values(job).values())
    changelog = committed(job.servers, f"{job.name}-counts", PARTITIONS)
    marked = {(record.value() or b"").startswith(_MARK) for record in changelog}
    assert marked == {True, False}
    job.kill()
    _widens(job, tmp_path / "wide", first)
    _converts(job, package(job, tmp_path, "units", ("n", "long", None), ("unit", "int", None)))


def _widens(job: Job, wide: Path, first: Path) -> None:
    """The stopped job gets the wider type, and its first code no more."""
    job.values["yarn.package.path"] = str(wide)
    job.run()
    job.wait_until_running()
    job.produce(KEYS)
    _is_exact(job)
    _kill_a_container(job)
    job.judge_history()
    job.kill()
    job.values["yarn.package.path"] = str(first)
    refused = job.call("run")
    assert refused.returncode == 1
    assert "the values of store 'counts' were written by avro" in refused.stderr
    rule = "; field n: long is no int; set the schema back, rewrite the values by homeport state"
    assert rule in refused.stderr


def _converts(job: Job, units: Path) -> None:
    """The stopped job gets a field without a default, by a function; each host restores it."""
    job.values["yarn.package.path"] = str(units)
    refused = job.call("run")
    assert refused.returncode == 1
    assert "rewrite the values by homeport state convert" in refused.stderr
    words = ("state", "convert", "counts", "--with=evolving:with_unit", "--json")
    done = job.operator(*words, limit_s=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["converted"] == KEYS
    job.run()
    job.wait_until_running()
    running = job.operator(*words, limit_s=240)
    assert running.returncode == 1
    assert f"runs already as {job.application_id}" in running.stderr
    job.produce(KEYS)
    _is_exact(job)
    assert all(sent[-1]["unit"] == 5 for sent in values(job).values())
    _kill_a_container(job)
    job.judge_history()
    job.kill()


def _is_exact(job: Job) -> None:
    wait_for(lambda: _counts(job).total() >= job.produced.total(), job)
    assert _counts(job) == job.produced
