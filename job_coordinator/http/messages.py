"""What launcher, stream container and AM say to each other: immutable values and their JSON form.

PURE. The routes and fields are those of the interfaces page, "HTTP between launcher, container and
AM".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from homeport.config.config import INT_MAX, LONG_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.http.container_report import ContainerReport
from homeport.job_coordinator.model.ids import Host, ResourceId, host_of
from homeport.job_coordinator.model.incarnation import (
    Incarnation,
    incarnations_from_json,
    incarnations_to_json,
)
from homeport.job_coordinator.model.job_package import optional_package
from homeport.job_coordinator.model.json_values import (
    as_object,
    compact_json,
    optional_field,
    optional_number,
    required_field,
    required_number,
    shown,
)
from homeport.job_coordinator.model.outcomes import Restored, StopCause

_MAX_NAME = 1_000
"""Characters of a host, or of a container's id: a record of each has to fit into any topic."""
_MAX_SECONDS = 1e9

STARTED_BYTES = 64 * 1024
"""A longer report of a start has sums: the AM keeps one of each container, and shows all of them.

Room for some hundred tasks; far below what the AM's server takes.
"""

TOKEN_FILE_NAME = "homeport-token"  # noqa: S105 - the name of the file, not a token
"""Name under which the job's bearer token is localised in every container's working directory."""


class OrderKind(Enum):
    """The AM's orders to a launcher."""

    RUN = "run"
    WAIT = "wait"
    STOP = "stop"
    EXIT = "exit"


class LeaseAnswer(Enum):
    """What the keeper answers to a renewal."""

    GRANTED = "granted"
    LATER = "later"
    """Not now: it is not registered yet, or renewals are held back. Ask again."""
    NO = "no"
    """Never again: it is revoked, or belongs to another attempt."""


def _name(body: Mapping[str, Any], field_name: str) -> str:
    name = required_field(body, field_name, str)
    if len(name) > _MAX_NAME:
        raise WireError(f"field {field_name!r} has more than {_MAX_NAME} characters")
    return name


@dataclass(frozen=True, slots=True)
class SpareReport:
    """The process that waits beside a container to be the next incarnation there.

    ``kind``: how much of a start it is to have behind it; ``is_ready``: whether it has.
    """

    kind: str
    is_ready: bool

    def to_json(self) -> dict[str, Any]:
        """As in a check-in and in the status."""
        return {"kind": self.kind, "ready": self.is_ready}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> SpareReport:
        """What ``body`` says of it; WireError where a field is missing or wrong."""
        return SpareReport(required_field(body, "kind", str), required_field(body, "ready", bool))


@dataclass(frozen=True, slots=True)
class CheckIn:
    """A launcher's poll: its id, its host, and which incarnation runs below it (None: none).

    ``report``: the running container's last report of its work; None where there is none.
    ``spare``: None where none is kept. ``package``: what the running container has; None: what YARN
    has localised, as in an order. ``prepared``: the last package that was ordered and made ready
    here: it is unpacked, and the spare, where one is kept, waits with it. ``unprepared``: why the
    package that was ordered last is not here; None: it is, or comes. ``quiet_ms``: how long ago the
    running container, an active one, has committed a transaction, or found that no input waits;
    None: it has not yet.
    """

    resource_id: ResourceId
    skein_id: str
    attempt: int
    host: Host
    pid: int
    running: Incarnation | None
    report: ContainerReport | None = None
    spare: SpareReport | None = None
    package: str | None = None
    prepared: str | None = None
    unprepared: str | None = None
    quiet_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The body of ``POST /v1/check-in``."""
        running = self.running and self.running.to_json()
        return {
            "resource_id": self.resource_id,
            "skein_id": self.skein_id,
            "attempt": self.attempt,
            "host": self.host,
            "pid": self.pid,
            "running": running,
            **({} if self.report is None else {"report": self.report.to_json()}),
            **({} if self.spare is None else {"spare": self.spare.to_json()}),
            **({} if self.package is None else {"package": self.package}),
            **({} if self.prepared is None else {"prepared": self.prepared}),
            **({} if self.unprepared is None else {"unprepared": self.unprepared}),
            **({} if self.quiet_ms is None else {"quiet_ms": self.quiet_ms}),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> CheckIn:
        """The check-in that ``body`` carries; WireError where a field is missing or wrong."""
        running = optional_field(body, "running", dict)
        report = optional_field(body, "report", dict)
        spare = optional_field(body, "spare", dict)
        unprepared = optional_field(body, "unprepared", str)
        return CheckIn(
            resource_id=ResourceId(_name(body, "resource_id")),
            skein_id=_name(body, "skein_id"),
            attempt=required_number(body, "attempt", 0, INT_MAX),
            host=host_of(_name(body, "host")),
            pid=required_number(body, "pid", 0, INT_MAX),
            running=None if running is None else Incarnation.from_json(running),
            report=None if report is None else ContainerReport.from_json(report),
            spare=None if spare is None else SpareReport.from_json(spare),
            package=optional_package(body, "package"),
            prepared=optional_package(body, "prepared"),
            unprepared=None if unprepared is None else " ".join(unprepared.split())[:_MAX_NAME],
            quiet_ms=optional_number(body, "quiet_ms"),
        )


@dataclass(frozen=True, slots=True)
class Order:
    """The AM's answer to a check-in.

    ``incarnation``, ``model_version`` and ``fence`` are set with RUN (and name what to stop with
    STOP). With WAIT, ``model_version`` is the version in force: a running container takes its
    tuning from it. ``next_ms``: when to poll again. ``lease_url``: where leases are renewed, with
    RUN. ``is_replaced``: with STOP, this standby is replaced by its active container, whose permit
    is likely to be the next order. ``package``: with RUN, what the incarnation runs with; with WAIT
    to a launcher that has a container, what the next permit of that processor has; None: what YARN
    has localised.
    """

    kind: OrderKind
    next_ms: int
    lease_ms: int
    incarnation: Incarnation | None = None
    model_version: int | None = None
    fence: tuple[Incarnation, ...] = ()
    lease_url: str | None = None
    is_replaced: bool = False
    package: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return {
            "order": self.kind.value,
            "processor_id": self.incarnation and self.incarnation.processor_id,
            "epoch": self.incarnation and self.incarnation.epoch,
            "model_version": self.model_version,
            "fence": incarnations_to_json(self.fence),
            "lease_ms": self.lease_ms,
            "next_ms": self.next_ms,
            "lease_url": self.lease_url,
            **({"makes_way": True} if self.is_replaced else {}),
            **({} if self.package is None else {"package": self.package}),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Order:
        """The order that ``body`` carries; WireError where a field is missing or wrong."""
        try:
            kind = OrderKind(body.get("order"))
        except ValueError:
            raise WireError(f"unknown order {shown(body.get('order'))}") from None
        incarnation = None if body.get("processor_id") is None else Incarnation.from_json(body)
        model_version = optional_number(body, "model_version")
        if kind is OrderKind.RUN and (incarnation is None or model_version is None):
            raise WireError("the order to run lacks processor_id or model_version")
        return Order(
            kind=kind,
            next_ms=required_number(body, "next_ms", 0, INT_MAX),
            lease_ms=required_number(body, "lease_ms", 0, INT_MAX),
            incarnation=incarnation,
            model_version=model_version,
            fence=incarnations_from_json(body, "fence"),
            lease_url=optional_field(body, "lease_url", str),
            is_replaced=optional_field(body, "makes_way", bool) or False,
            package=optional_package(body, "package"),
        )


@dataclass(frozen=True, slots=True)
class Renewal:
    """A launcher asks for its child's lease to last longer."""

    attempt: int
    incarnation: Incarnation

    def to_json(self) -> dict[str, Any]:
        """The body of ``POST /v1/lease``."""
        return {
            "attempt": self.attempt,
            **self.incarnation.to_json(),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Renewal:
        """The renewal that ``body`` carries; WireError where a field is missing or wrong."""
        return Renewal(required_number(body, "attempt", 0, INT_MAX), Incarnation.from_json(body))


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """The keeper's answer to a renewal; ``lease_ms`` counts from when the renewal was sent."""

    answer: LeaseAnswer
    lease_ms: int

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return {"lease": self.answer.value, "lease_ms": self.lease_ms}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> LeaseGrant:
        """The answer that ``body`` carries; WireError where a field is missing or wrong."""
        try:
            answer = LeaseAnswer(body.get("lease"))
        except ValueError:
            raise WireError(f"unknown lease {shown(body.get('lease'))}") from None
        return LeaseGrant(answer, required_number(body, "lease_ms", 0, INT_MAX))


@dataclass(frozen=True)
class Started:
    """A stream container has restored and written its locality; it is about to take input.

    Shapes: ``restored`` {store: {task: Restored}}; ``seconds`` {phase: seconds}.
    """

    incarnation: Incarnation
    restored: Mapping[str, Mapping[str, Restored]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The body of ``POST /v1/started``."""
        return {
            **self.incarnation.to_json(),
            "restored": {
                s: {t: r.to_json() for t, r in tasks.items()} for s, tasks in self.restored.items()
            },
            "seconds": dict(self.seconds),
        }

    def within(self, limit_bytes: int) -> Started:
        """This report, with sums in the place of tasks where its body would be longer."""
        if len(compact_json(self.to_json())) <= limit_bytes:
            return self
        return replace(
            self, restored={s: Restored.sums(tasks.values()) for s, tasks in self.restored.items()}
        )

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Started:
        """The message that ``body`` carries; WireError where a field is missing or wrong."""
        restored: dict[str, dict[str, Restored]] = {}
        for store, tasks in required_field(body, "restored", dict).items():
            of_store = as_object(tasks, f"'restored' of store {shown(store)}")
            restored[store] = {
                task: Restored.from_json(as_object(entry, f"'restored' of task {shown(task)}"))
                for task, entry in of_store.items()
            }
        seconds = required_field(body, "seconds", dict)
        return Started(
            Incarnation.from_json(body),
            restored,
            {phase: _seconds(seconds, phase) for phase in seconds},
        )


def _seconds(body: Mapping[str, Any], phase: str) -> float:
    value = body[phase]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < _MAX_SECONDS:
        raise WireError(f"phase {shown(phase)} has no number of seconds: {shown(value)}")
    return float(value)


@dataclass(frozen=True)
class Stopped:
    """A launcher waited for its stream container and it is gone.

    ``age_ms``: how long ago the launcher saw the end, when it reports.
    """

    incarnation: Incarnation
    cause: StopCause
    exit_code: int
    last_lines: tuple[str, ...] = ()
    age_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        """The body of ``POST /v1/stopped``."""
        return {
            **self.incarnation.to_json(),
            "cause": self.cause.value,
            "exit_code": self.exit_code,
            "last_lines": list(self.last_lines),
            "age_ms": self.age_ms,
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Stopped:
        """The message that ``body`` carries; WireError where a field is missing or wrong."""
        try:
            cause = StopCause(body.get("cause"))
        except ValueError:
            raise WireError(f"unknown cause {shown(body.get('cause'))}") from None
        return Stopped(
            Incarnation.from_json(body),
            cause,
            required_number(body, "exit_code", -INT_MAX, INT_MAX),
            tuple(
                line if isinstance(line, str) else shown(line)
                for line in required_field(body, "last_lines", list)
            ),
            max(optional_number(body, "age_ms", -LONG_MAX) or 0, 0),
        )


@dataclass(frozen=True, slots=True)
class Unfit:
    """A YARN container in which no launcher can start, as its host lacks what the job needs."""

    skein_id: str
    reason: str

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Unfit:
        """The message that ``body`` carries; WireError where a field is missing or wrong."""
        return Unfit(
            required_field(body, "skein_id", str)[:_MAX_NAME],
            " ".join(required_field(body, "reason", str).split())[:_MAX_NAME],
        )
