"""Processors with standbys, with ZooKeeper and a broker: one is killed, its backups take over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from histories import require_sound
from standalone_jobs import PARTITIONS, StandaloneJob, on_zookeeper, standalone_job
from zookeeper_server import ZooKeeperServer

from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.http.direct import OPENER

NAMES = ("one", "two", "three")
_OF_EACH = 25
_READ_ON = re.compile(r"adjunct store (\w+)/(.+?) is (kept|new): its stream \S+ is read on at (.*)")


@pytest.fixture
def job(kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[StandaloneJob]:
    """Each task has one standby; sessions last 3 s.

    All processors join the first version. Of a version for two of them the third one inherits
    standbys that even sizes do not promote.
    """
    more = {
        **on_zookeeper(zookeeper.connect),
        "job.debounce.time.ms": "3000",
        "job.standbytasks.replication.factor": "2",
        "task.commit.ms": "500",
        "cluster-manager.jobcoordinator.url.host": "127.0.0.1",
    }
    with standalone_job(kafka, tmp_path, more) as made:
        yield made


def fill_adjuncts(job: StandaloneJob) -> None:
    """Two streams, with so many records in each partition: one of tasks, one of containers."""
    planes, airlines = f"{job.name}-planes", f"{job.name}-airlines"
    admin = AdminClient({"bootstrap.servers": job.servers})
    topics = [NewTopic(planes, PARTITIONS, 1), NewTopic(airlines, 1, 1)]
    for future in admin.create_topics(topics).values():
        future.result(60)
    producer = Producer({"bootstrap.servers": job.servers})
    for number in range(_OF_EACH):
        for partition in range(PARTITIONS):
            producer.produce(planes, b"A320", f"N{number}".encode(), partition=partition)
        producer.produce(airlines, b"long name", f"A{number}".encode(), partition=0)
    assert producer.flush(60) == 0
    keys = {
        "task.inputs": f"kafka.{job.name}-in, kafka.{planes}",
        "task.broadcast.inputs": f"kafka.{airlines}#0",
        "stores.planes.adstore.input": f"kafka.{planes}",
        "stores.airlines.adstore.input": f"kafka.{airlines}",
        **{
            f"stores.{name}.{key}": text
            for name in ("planes", "airlines")
            for key, text in (
                ("factory", "rocksdb"),
                ("key.serde", "string"),
                ("msg.serde", "string"),
            )
        },
        **{f"systems.kafka.streams.{name}.samza.bootstrap": "true" for name in (planes, airlines)},
    }
    with job.config.open("a", encoding="utf-8") as file:
        file.write("".join(f"{key}={text}\n" for key, text in keys.items()))


def read_on(job: StandaloneJob) -> list[tuple[str, ...]]:
    """(store, its place, kept or new, where its stream is read on) of each start so far."""
    logs = sorted(job.folder.glob("work/*/container-*.log"))
    return [
        (log.parent.name, *found)
        for log in logs
        for found in _READ_ON.findall(log.read_text(encoding="utf-8"))
    ]


def last_process(job: StandaloneJob, name: str) -> tuple[int, int]:
    """(epoch, pid) of the incarnation of the processor that started last."""
    line = last(job, "started", name)
    return int(str(line["epoch"])), int(str(line["pid"]))


def get(job: StandaloneJob, name: str, path: str) -> str:
    """What the processor of that name answers, redirects followed."""
    log_text = (job.folder / f"{name}.log").read_text(encoding="utf-8")
    (url,) = re.findall(r"it answers at (\S+)", log_text)
    with OPENER.open(f"{url}{path}", timeout=60) as answer:
        body: str = answer.read().decode()
    return body


def status(job: StandaloneJob, name: str) -> Any:  # noqa: ANN401 - JSON
    """The whole job, as its leader says it."""
    return json.loads(get(job, name, "v1/status"))


def standbys_shown(job: StandaloneJob, name: str) -> dict[str, list[str]]:
    """{processor: its standbys}, of those that the leader says to be caught up."""
    return {
        c["processor_id"]: [s["name"] for s in c["standbys"] if s["is_caught_up"]]
        for c in status(job, name)["containers"]
    }


def texts(value: object) -> list[str]:
    """The texts of a list in a line."""
    assert isinstance(value, list)
    return [str(item) for item in value]


def following(job: StandaloneJob, names: Sequence[str], since_ms: int = 0) -> dict[str, list[str]]:
    """{processor: the standbys that it says to follow}, as each of these last said."""
    return {
        str(line["processor_id"]): texts(line["replicas"])
        for line in job.history("standby-following")
        if line["processor_id"] in names and int(str(line["ts_ms"])) > since_ms
    }


def follow_all(job: StandaloneJob, names: Sequence[str], since_ms: int = 0) -> bool:
    """Whether each task has its standby."""
    found = following(job, names, since_ms).values()
    return sorted(name for own in found for name in own) == [
        f"Standby-Partition {number}-0" for number in range(PARTITIONS)
    ]


def follow_their_own(job: StandaloneJob, names: Sequence[str]) -> bool:
    """Whether no version is under way, and each follows what it keeps in the newest one.

    The last lines of processors may be of two versions, and have each standby once all the same.
    """
    body = status(job, names[0])
    kept = {c["processor_id"]: {x["name"] for x in c["standbys"]} for c in body["containers"]}
    found = {name: set(own) for name, own in following(job, names).items()}
    agree = all(found.get(name, set()) == own for name, own in kept.items())
    return body["change"] is None and agree


def last(job: StandaloneJob, event: str, name: str) -> dict[str, object]:
    """The last such line of the processor."""
    return [line for line in job.history(event) if line["processor_id"] == name][-1]


def test_the_tasks_of_a_killed_processor_start_where_their_standbys_are(job: StandaloneJob) -> None:
    """Of their changelogs only the tail is read, no process of a user's ends, the result is exact.

    No process begins for it. Each of the three is a location of its own. What the killed one had
    kept as standbys has places again, while the tasks of the others work on.
    """
    job.produce(30)
    fill_adjuncts(job)
    processors = {name: job.processor(name, f"at-{name}") for name in NAMES}
    job.until(lambda: all(map(job.started_by, NAMES)))
    job.until(lambda: follow_all(job, NAMES) and follow_their_own(job, NAMES))
    job.until_counted()
    _require_shown(job)
    before, pids = read_on(job), {name: last_process(job, name) for name in NAMES}
    owned = {name: texts(last(job, "fenced", name)["tasks"]) for name in NAMES}
    kept = following(job, NAMES)
    dead = max(NAMES, key=lambda name: len(owned[name]))
    assert owned[dead]
    alive = [name for name in NAMES if name != dead]
    killed_ms = wall_ms()
    processors[dead].kill()
    processors[dead].wait(60)
    job.produce(10)
    job.until_counted()
    job.until(lambda: follow_all(job, alive, killed_ms))
    _require_promoted(job, owned[dead], kept, killed_ms)
    owners = {task: n for n in alive for task in texts(last(job, "fenced", n)["tasks"])}
    _require_adjuncts_kept({t: owners[t] for t in owned[dead]}, read_on(job), before)
    (leader,) = [n for n in alive if "homeport_tasks_lost_total 0.0" not in get(job, n, "metrics")]
    assert f"homeport_tasks_lost_total {len(owned[dead])}.0" in get(job, leader, "metrics")
    assert "homeport_tasks_unbacked_total 0.0" in get(job, leader, "metrics")
    taken_over = status(job, alive[0])["taken_over"]
    assert (taken_over["lost"], taken_over["unbacked"]) == (len(owned[dead]), 0)
    taken = job.history("tasks-taken-over")
    assert [(line["lost"], line["unbacked"]) for line in taken] == [(len(owned[dead]), 0)]
    assert all(processors[name].poll() is None for name in alive)
    for name in set(owners.values()):  # where tasks were promoted, no process has begun
        (epoch, pid), (epoch_before, pid_before) = last_process(job, name), pids[name]
        assert epoch > epoch_before
        assert pid == pid_before, job.logs()
    job.stop(*(processors[name] for name in alive))
    assert job.counted() == job.sent
    require_sound(job.folder.glob("stores-*"))


@pytest.mark.long
def test_a_promotion_keeps_sparks_jvm(job: StandaloneJob) -> None:
    """The next generation of the survivor takes the Spark of the one before."""
    code = "def same(frame):\n    return frame\n"
    (job.folder / "package" / "pipe.py").write_text(code, encoding="utf-8")
    with job.config.open("a", encoding="utf-8") as file:
        file.write("task.pipeline.class=pipe:same\n")
    names = ("one", "two")
    job.produce(30)
    processors = {name: job.processor(name, f"at-{name}") for name in names}
    job.until(lambda: all(map(job.started_by, names)))
    job.until(lambda: follow_all(job, names))
    job.until_counted()
    before = last_process(job, "two")
    processors["one"].kill()
    job.produce(10)
    job.until(lambda: last_process(job, "two")[0] > before[0])
    job.until_counted()
    assert last_process(job, "two")[1] == before[1]
    logs = job.folder.glob("work/processor-two/container-*.log")
    log_text = "".join(log.read_text(encoding="utf-8") for log in logs)
    *_, last_but_one, last_one = re.findall(r"Spark stands, pid (\d+)", log_text)
    assert last_but_one == last_one
    job.stop(processors["two"])
    assert not Path(f"/proc/{last_one}").exists()
    require_sound(job.folder.glob("stores-*"))


def _require_shown(job: StandaloneJob) -> None:
    """The leader's page has every standby with its lag, also of what another processor keeps."""
    kept = following(job, NAMES)
    job.until(
        lambda: standbys_shown(job, "two") == {name: kept.get(name, []) for name in NAMES},
        lambda: (status(job, "two"), kept),
    )
    keeper = max(kept, key=lambda name: len(kept[name]))
    numbers = get(job, keeper, "metrics")
    state = f'homeport_standbys{{processor="{keeper}",state="caught_up"}} {len(kept[keeper])}.0'
    assert state in numbers
    for store in ("counts", "planes"):
        lag = f'homeport_standby_lag_records{{processor="{keeper}",store="{store}"'
        assert f'{lag},task="{kept[keeper][0]}"}} 0.0' in numbers


def _require_adjuncts_kept(
    owners: dict[str, str], starts: list[tuple[str, ...]], before: list[tuple[str, ...]]
) -> None:
    """The new owner of each task reads on behind the last record; ``before``: earlier starts.

    The task's next standby, on the other processor, is new.
    """
    after = starts.copy()
    for start in before:
        after.remove(start)
    at = f": {_OF_EACH}"
    for task, owner in owners.items():
        own = (f"processor-{owner}", "planes", task.replace(" ", "_"))
        found = [(what, where[-len(at) :]) for *place, what, where in after if tuple(place) == own]
        assert found == [("kept", at)], (task, owner, after)


def _require_promoted(
    job: StandaloneJob, lost: list[str], kept: dict[str, list[str]], killed_ms: int
) -> None:
    """Each lost task has started where its standby was, and has read nothing older than that."""
    for task in lost:
        restored = [
            line
            for line in job.history("restore-finished")
            if line["task"] == task and int(str(line["ts_ms"])) > killed_ms
        ]
        assert len(restored) == 1, restored
        line = restored[0]
        assert f"Standby-{task}-0" in kept[str(line["processor_id"])]
        assert line["kind"] != "full", line
        assert line["records"] == 0, line
