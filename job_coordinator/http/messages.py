"""What launcher, stream container and AM say to each other: immutable values and their JSON form.

PURE. The routes and fields are those of the interfaces page, "HTTP between launcher, container and AM".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from homeport.config.errors import WireError
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId, host_of
from homeport.job_coordinator.model.incarnation import Incarnation

TOKEN_FILE_NAME = "homeport-token"
"""Name under which the job's bearer token is localised in every container's working directory."""


class OrderKind(Enum):
    """What the AM tells a launcher to do."""

    RUN = "run"
    WAIT = "wait"
    STOP = "stop"
    EXIT = "exit"


class StopCause(Enum):
    """Why a stream container ended; the cause, never the exit code, decides what the allocator does."""

    FINISHED = "finished"
    ORDERED = "ordered"
    SIGNALLED = "signalled"
    FAILED = "failed"
    LEASE_LOST = "lease-lost"
    KILLED = "killed"


class RestoreKind(Enum):
    """How a store came to its content at a start: nothing to read, only what follows OFFSET, or all of it."""

    NONE = "none"
    TAIL = "tail"
    FULL = "full"


def _field(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:  # noqa: ANN401 - JSON value
    value = body.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise WireError(f"field {name!r} is missing or of the wrong type: {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class CheckIn:
    """A launcher's poll: who and where it is, and which incarnation runs below it (None: none)."""

    resource_id: ResourceId
    skein_id: str
    attempt: int
    host: Host
    pid: int
    running: Incarnation | None

    def to_json(self) -> dict[str, Any]:
        """The body of ``POST /v1/check-in``."""
        running = self.running and {"processor_id": self.running.processor_id, "epoch": self.running.epoch}
        return {
            "resource_id": self.resource_id,
            "skein_id": self.skein_id,
            "attempt": self.attempt,
            "host": self.host,
            "pid": self.pid,
            "running": running,
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> CheckIn:
        """The check-in that ``body`` carries; WireError where a field is missing or of the wrong type."""
        running = body.get("running")
        if running is not None and not isinstance(running, dict):
            raise WireError(f"field 'running' is neither null nor an object: {running!r}")
        return CheckIn(
            resource_id=ResourceId(_field(body, "resource_id", str)),
            skein_id=_field(body, "skein_id", str),
            attempt=_field(body, "attempt", int),
            host=host_of(_field(body, "host", str)),
            pid=_field(body, "pid", int),
            running=None
            if running is None
            else Incarnation(ProcessorId(_field(running, "processor_id", str)), _field(running, "epoch", int)),
        )


@dataclass(frozen=True, slots=True)
class Order:
    """The AM's answer to a check-in.

    ``incarnation``, ``model_version`` and ``fence`` are set with RUN (and name what to stop with STOP).
    ``next_ms``: when to poll again.
    """

    kind: OrderKind
    next_ms: int
    lease_ms: int
    incarnation: Incarnation | None = None
    model_version: int | None = None
    fence: tuple[Incarnation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return {
            "order": self.kind.value,
            "processor_id": self.incarnation and self.incarnation.processor_id,
            "epoch": self.incarnation and self.incarnation.epoch,
            "model_version": self.model_version,
            "fence": [{"processor_id": i.processor_id, "epoch": i.epoch} for i in self.fence],
            "lease_ms": self.lease_ms,
            "next_ms": self.next_ms,
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Order:
        """The order that ``body`` carries; WireError where a field is missing or of the wrong type."""
        try:
            kind = OrderKind(body.get("order"))
        except ValueError:
            raise WireError(f"unknown order {body.get('order')!r}") from None
        incarnation = None
        if body.get("processor_id") is not None:
            incarnation = Incarnation(ProcessorId(_field(body, "processor_id", str)), _field(body, "epoch", int))
        return Order(
            kind=kind,
            next_ms=_field(body, "next_ms", int),
            lease_ms=_field(body, "lease_ms", int),
            incarnation=incarnation,
            model_version=body.get("model_version"),
            fence=tuple(
                Incarnation(ProcessorId(_field(i, "processor_id", str)), _field(i, "epoch", int))
                for i in _field(body, "fence", list)
            ),
        )


@dataclass(frozen=True, slots=True)
class Restored:
    """How one store of one task was restored: offsets read (inclusive; None where nothing was) and records read."""

    kind: RestoreKind
    from_offset: int | None
    to_offset: int | None
    records: int

    def to_json(self) -> dict[str, Any]:
        """``{kind, from, to, records}``."""
        return {"kind": self.kind.value, "from": self.from_offset, "to": self.to_offset, "records": self.records}


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
            "processor_id": self.incarnation.processor_id,
            "epoch": self.incarnation.epoch,
            "restored": {s: {t: r.to_json() for t, r in tasks.items()} for s, tasks in self.restored.items()},
            "seconds": dict(self.seconds),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Started:
        """The message that ``body`` carries; WireError where a field is missing or of the wrong type."""
        restored: dict[str, dict[str, Restored]] = {}
        for store, tasks in _field(body, "restored", dict).items():
            restored[store] = {
                task: Restored(RestoreKind(r["kind"]), r["from"], r["to"], r["records"]) for task, r in tasks.items()
            }
        return Started(
            Incarnation(ProcessorId(_field(body, "processor_id", str)), _field(body, "epoch", int)),
            restored,
            {str(k): float(v) for k, v in _field(body, "seconds", dict).items()},
        )


@dataclass(frozen=True)
class Stopped:
    """A launcher waited for its stream container and it is gone."""

    incarnation: Incarnation
    cause: StopCause
    exit_code: int
    last_lines: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The body of ``POST /v1/stopped``."""
        return {
            "processor_id": self.incarnation.processor_id,
            "epoch": self.incarnation.epoch,
            "cause": self.cause.value,
            "exit_code": self.exit_code,
            "last_lines": list(self.last_lines),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Stopped:
        """The message that ``body`` carries; WireError where a field is missing or of the wrong type."""
        try:
            cause = StopCause(body.get("cause"))
        except ValueError:
            raise WireError(f"unknown cause {body.get('cause')!r}") from None
        return Stopped(
            Incarnation(ProcessorId(_field(body, "processor_id", str)), _field(body, "epoch", int)),
            cause,
            _field(body, "exit_code", int),
            tuple(str(line) for line in _field(body, "last_lines", list)),
        )
