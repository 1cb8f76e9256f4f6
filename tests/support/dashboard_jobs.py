"""Jobs for tests of the dashboard: the body of ``/v1/status`` of any size, with work in it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from coordinator_server import Backend
from prometheus_client.core import Metric
from statuses import outlook_of

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.secret_names import shown_value
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.http.actions import Plan
from homeport.job_coordinator.http.callers import Caller
from homeport.job_coordinator.http.query_params import EventsAsked
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)
from homeport.job_coordinator.model.json_values import compact_json, required_field
from homeport.job_coordinator.model.wire_form import value_of
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import ShownStatus

SECRET = "hunter2"  # noqa: S105 - of no real program


def container(number: int, host: str, now_ms: int, **changes: object) -> dict[str, Any]:
    """A container that runs, with work behind it."""
    return {
        "processor_id": str(number),
        "role": "active",
        "replica_of": None,
        "lag": None,
        "lag_seconds": None,
        "host": host,
        "last_host": host,
        "requested_host": None,
        "phase": "running",
        "since_ms": now_ms - 7_380_000 - number * 1000,
        "epoch": 3,
        "model_version": 4,
        "resource": f"container_e05_1700000000000_0001_01_{number + 2:06}",
        "failures": 0,
        "last_failure": None,
        "recovery": None,
        "report": {
            "restoring": [],
            "lags": [],
            "processed": 120_000 + 977 * number,
            "input_lag": 11 * number % 97,
            "stages": [
                {"stage": "tasks", "ms": 61_000, "times": 1500},
                {"stage": "sending", "ms": 9_100, "times": 700},
            ],
        },
        **changes,
    }


def standby(number: int, host: str, now_ms: int, **changes: object) -> dict[str, Any]:
    """The standby of the container of that number."""
    return container(
        number,
        host,
        now_ms,
        **{
            "processor_id": f"{number}-0",
            "role": "standby",
            "replica_of": str(number),
            "lag": 7 * number % 40,
            "lag_seconds": 0.4,
            "report": {"restoring": [], "lags": []},
            **changes,
        },
    )


def status_of(containers: list[dict[str, Any]], hosts: Iterable[str]) -> dict[str, Any]:
    """The body of ``/v1/status`` with these."""
    return {
        "job": {
            "name": "flights",
            "id": "1",
            "application": "application_1700000000000_0001",
            "attempt": 1,
            "state": "running",
            "health": "deployed",
            "model_version": 4,
        },
        "application_url": "http://127.0.0.1:8088/proxy/application_1700000000000_0001/",
        "containers": containers,
        "hosts": sorted(hosts),
        "excluded_hosts": [],
        "suspects_itself": False,
        "coordinator_stream": "ok",
        "failures": [{"processor_id": "2", "cause": "killed", "last_lines": [SECRET]}],
    }


def settled_job(pairs: int, hosts: int) -> dict[str, Any]:
    """Active containers with a standby each, on hosts that are all well."""
    now_ms = int(time.time() * 1000)
    names = [f"nm{number + 1:02}.example.com" for number in range(hosts)]
    made = [container(n, names[n % hosts], now_ms) for n in range(pairs)]
    made += [standby(n, names[(n + 1) % hosts], now_ms) for n in range(pairs)]
    return status_of(made, names)


def written(key: str, value: str, source: str) -> CoordinatorStreamMessage:
    """The record of a key as that program has written it."""
    return wire.set_config(key, value).stamped(
        source=source, host="gateway", username="ada", timestamp_ms=1_764_000_000_000
    )


class JobOnPage(Backend):
    """``JobCoordinatorBackend`` and ``DecisionSource`` of a job whose status a test sets."""

    def __init__(self, status: dict[str, Any]) -> None:
        super().__init__()
        self.current = status
        self.decided: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        """The bodies of the actions that were carried out."""
        self.answers: dict[str, dict[str, Any]] = {}
        """To actions, by their uuid."""
        ids = [c["processor_id"] for c in status["containers"]]
        config = Config(
            {
                "job.name": "flights",
                "task.commit.ms": "5000",
                "job.container.count": str(len(ids)),
                "my.own.password": SECRET,
            }
        )
        self.models = {None: JobModel(config, {ProcessorId(i): _model(i) for i in ids})}

    def status(self) -> ShownStatus:
        """As the test has set it."""
        return value_of(ShownStatus, self.current, "the status")

    def events(self, asked: EventsAsked) -> bytes:
        """Those that the test has decided."""
        found = [e for e in self.decided if asked.since is None or e["number"] > asked.since]
        return compact_json(
            {
                "version": 1,
                "since_ms": 1_764_000_000_000,
                "first": 1 if self.decided else 0,
                "last": len(self.decided),
                "more": False,
                "events": found[-asked.limit :],
            }
        )

    def decide(self, cause: str, processor_id: str, *sentences: str) -> None:
        """One more event."""
        reasons = [
            {"kind": "k", "processor_id": processor_id, "host": None, "other": None, "sentence": s}
            for s in sentences
        ]
        self.decided.append(
            {
                "number": len(self.decided) + 1,
                "at_ms": int(time.time() * 1000),
                "cause": cause,
                "reasons": reasons,
                "records": ["WriteEpoch epoch=4"],
                "instructions": ["RequestResource nm03.example.com"],
                "left_out": 0,
            }
        )

    async def what_if(self, hosts: Collection[Host]) -> ShownOutlook:
        """Nothing would come of it."""
        return outlook_of(*hosts)

    async def written(self) -> Mapping[str, CoordinatorStreamMessage] | None:
        """One key was changed after the deployment."""
        keys = {"job.name": "flights", "job.container.count": "6", "my.own.password": SECRET}
        found = {k: written(k, v, "job-runner") for k, v in keys.items()}
        changed = written("task.commit.ms", "5000", "coordinator-stream-writer")
        return {**found, "task.commit.ms": changed}

    def metrics(self) -> Iterable[Metric]:
        """None."""
        return ()


def _model(processor_id: str) -> ContainerModel:
    number = int(processor_id.partition("-")[0])
    name = TaskName(f"Partition {number}")
    inputs = (SystemStreamPartition("kafka", "flights", number),)
    return ContainerModel(ProcessorId(processor_id), {name: TaskModel(name, inputs, number)})


def lose_host(status: dict[str, Any], host: str) -> None:
    """The host is lost; its actives restore on the hosts of their standbys, its standbys wait."""
    now_ms = int(time.time() * 1000)
    status["hosts"] = [h for h in status["hosts"] if h != host]
    status["job"]["health"] = "recovering"
    by_id = {c["processor_id"]: c for c in status["containers"]}
    for one in status["containers"]:
        if one["host"] != host:
            continue
        recovery = {"cause": "resource-ended", "from": host, "to": None, "is_over": False}
        one.update(since_ms=now_ms - 21_000, epoch=4, last_host=host, recovery=recovery)
        if one["replica_of"] is not None:
            one.update(phase="requested", host=None, requested_host=None, report=None, lag=None)
            one.update(last_host=host)
            continue
        replica = by_id.get(f"{one['processor_id']}-0")
        place = replica["host"] if replica else None
        restore = {
            "store": "planes",
            "task": f"Partition {one['processor_id']}",
            "records": 61_000,
            "bytes": 9_000_000,
            "remaining": 38_000,
            "records_per_s": 950.0,
            "seconds_left": 40.0,
            "merging": 0,
        }
        one.update(phase="starting", host=place, report={"restoring": [restore], "lags": []})
        if replica:
            replica.update(phase="requested", host=None, report=None, since_ms=now_ms - 20_000)


class ActionsOnPage:
    """``OperatorActions`` of a job on a page: a container is where it is moved to at once."""

    names = ("move", "restart", "cancel", "drain", "config")

    def __init__(self, job: JobOnPage) -> None:
        self._job = job
        self.carried_out: list[tuple[str, dict[str, Any]]] = []

    async def plan(self, name: str, asked: Mapping[str, Any]) -> Plan:
        """Of another container than the job has: it is not possible."""
        if name == "config":
            key = required_field(asked, "key", str)
            if key.startswith("yarn."):
                raise ConfigError(key, None, "the AM writes it", "leave it")
            value = asked.get("value")
            after = None if value is None else shown_value(key, str(value))
            line = "the running job takes it within 2000 ms"
            return Plan(f"config {key}", "5000", after, (line,))
        if name == "drain":
            return self._plan_of_drain(required_field(asked, "host", str), asked)
        processor = required_field(asked, "processor", str)
        host = str(asked.get("host", ""))
        found = [c for c in self._job.current["containers"] if c["processor_id"] == processor]
        if not found:
            return Plan(f"{name} {processor}", None, host, ("no processor",), is_possible=False)
        before = str(found[0]["host"])
        return Plan(f"{name} {processor}", before, host, (f"{processor}: {before} -> {host}",))

    def _plan_of_drain(self, host: str, asked: Mapping[str, Any]) -> Plan:
        if asked.get("undo"):
            return Plan(f"undo drain {host}", host, None, (f"{host} gets containers again",))
        here = [c["processor_id"] for c in self._job.current["containers"] if c["host"] == host]
        lines = (*(f"{p}: {host} -> elsewhere" for p in here), f"{host} gets no other container")
        return Plan(f"drain {host}", None, host, lines)

    async def carry_out(self, name: str, asked: Mapping[str, Any], by: Caller) -> Mapping[str, Any]:
        """Done at once, and answered; a drain by force is never done."""
        self.carried_out.append((by.name, {"action": name, **asked}))
        self._job.asked.append({"action": name, **asked})
        if name == "config":
            return {"uuid": None, "message": "set"}
        if name == "drain" and asked.get("undo"):
            return {"uuid": None, "message": f"{asked['host']} gets containers again"}
        uuid = f"00000000-0000-0000-0000-{len(self._job.answers):012}"
        if name == "drain":
            is_done = not asked.get("force")
            message = f"{asked['host']} has no container of the job" if is_done else "0 leaves it"
            status = "SUCCEEDED" if is_done else "IN_PROGRESS"
            self._job.answers[uuid] = {"status": status, "message": message, "final": is_done}
            return {"uuid": uuid, "message": "those there leave it"}
        for one in self._job.current["containers"]:
            if one["processor_id"] == asked["processor"] and name == "move":
                one["host"] = asked["host"]
        message = f"{asked['processor']}@4 runs on {asked.get('host', 'its host')}"
        self._job.answers[uuid] = {"status": "SUCCEEDED", "message": message, "final": True}
        return {"uuid": uuid, "message": f"{name}: written"}

    async def answer(self, uuid: str) -> Mapping[str, Any] | None:
        """As it was given."""
        return self._job.answers.get(uuid)
