"""The messages between launcher, stream container and AM: immutable values and their JSON form.

PURE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, Any, ClassVar, Self

import msgspec

from homeport.config.config import INT_MAX, LONG_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.model.ids import Host, ResourceId, TaskName, host_of
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_package import PACKAGE_NAME
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.outcomes import Restored, StopCause, reason_of
from homeport.job_coordinator.model.wire_form import Int, Long, body_of, value_of
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.shape import SpareReport

_MAX_NAME = 1_000
"""Characters of a host, or of a container's id: a record with it has to fit into every topic."""
_ENDED_BY_FAULT = frozenset({StopCause.FAILED, StopCause.DISK_FULL, StopCause.NO_PACKAGE})
"""Causes whose last line gives the reason; that of a killed process is any line of its log."""
_Name = Annotated[str, msgspec.Meta(max_length=_MAX_NAME)]
_Kind = Annotated[str, msgspec.Meta(max_length=100)]
_Place = Annotated[str, msgspec.Meta(max_length=4096)]
_Package = Annotated[str, msgspec.Meta(pattern=rf"\A{PACKAGE_NAME}\Z")]
_Seconds = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]

STARTED_BYTES = 64 * 1024
"""A longer report of a start has sums: the AM keeps one for each container, and shows all of them.

This is room for some hundred tasks, and far below the longest body that the AM's server takes.
"""

TOKEN_FILE_NAME = "homeport-token"  # noqa: S105 - the name of the file, not a token
"""Name of the file with the job's bearer token in every container's working directory."""


_ORDER_NULLS = ("processor_id", "epoch", "model_version", "lease_url")
"""Fields of an order that are written as null if they have no value."""


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


class _Message:
    """An HTTP body; ``_flat``: the field whose own fields are in the object itself."""

    __slots__ = ()
    _what: ClassVar[str]
    _flat: ClassVar[str] = ""

    def to_json(self) -> dict[str, Any]:
        return body_of(self, flat=self._flat)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        return cls._as_received(value_of(cls, body, cls._what, flat=cls._flat))

    def _as_received(self) -> Self:
        """Return the message with values that a sender may not have normalised."""
        return self


@dataclass(frozen=True, slots=True)
class CheckIn(_Message):
    """A launcher's poll: its id, its host, and the incarnation that it runs (None: none).

    ``report``: the running container's last report of its work. ``spare``: the spare process.
    ``package``: the running container's; None: the one that YARN has localised, as in an order.
    ``prepared``: the last ordered package that is ready here: it is unpacked, and a spare waits
    with it. ``unprepared``: why the last ordered package is not here, or its spare never gets
    ready; None: it is here, or on its way. ``quiet_ms``: how long ago the running active container
    has committed a transaction, or found that no input waits; None: it has not yet. ``python``,
    ``version``: the environment of the launcher and of homeport in it; None: of 0.1, which does not
    report them.
    """

    _what = "a check-in"
    resource_id: Annotated[ResourceId, msgspec.Meta(max_length=_MAX_NAME)]
    skein_id: _Name
    attempt: Int
    host: Annotated[Host, msgspec.Meta(max_length=_MAX_NAME)]
    pid: Int
    running: Incarnation | None = None
    report: ContainerReport | None = None
    spare: SpareReport | None = None
    package: _Package | None = None
    prepared: _Package | None = None
    unprepared: str | None = None
    quiet_ms: Long | None = None
    python: _Place | None = None
    version: _Name | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the body of ``POST /v1/check-in``."""
        return {"running": None} | body_of(self)

    def _as_received(self) -> Self:
        unprepared = None if self.unprepared is None else _line(self.unprepared)
        return replace(self, host=host_of(self.host), unprepared=unprepared)


@dataclass(frozen=True, slots=True)
class Order:
    """The AM's answer to a check-in.

    ``incarnation``, ``model_version`` and ``fence`` are set with RUN; with STOP they name the
    incarnation to stop. With WAIT, ``model_version`` is the version in force: a running container
    takes its tuning from it. ``next_ms``: when to poll again. ``lease_url``: where to renew leases,
    with RUN. ``is_replaced``: with STOP, the active container takes the place of this standby, and
    its permit is likely to be the next order. ``package``: with RUN, the incarnation's package;
    with WAIT to a launcher that has a container, the package of the processor's next permit; None:
    the package that YARN has localised. ``keep``: with STOP, the process waits for the next permit,
    and these of its tasks stay; None: it ends. ``prepare``: with WAIT to a launcher without a
    container, the kind of process that it makes ready for its permit.
    """

    kind: OrderKind
    next_ms: Int
    lease_ms: Int
    incarnation: Incarnation | None = None
    model_version: Long | None = None
    fence: tuple[Incarnation, ...] = ()
    lease_url: str | None = None
    is_replaced: bool = False
    package: _Package | None = None
    keep: tuple[TaskName, ...] | None = None
    prepare: _Kind | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer's body."""
        body = dict.fromkeys(_ORDER_NULLS) | body_of(self, flat="incarnation")
        is_replaced = {"makes_way": True} if body.pop("is_replaced") else {}
        return {"order": body.pop("kind"), **body, **is_replaced}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Return the order of ``body``; WireError where a field is missing or wrong."""
        renamed = {"kind": body.get("order"), "is_replaced": body.get("makes_way", False)}
        incarnation = body if body.get("processor_id") is not None else None
        found = value_of(cls, {**body, **renamed, "incarnation": incarnation}, "an order")
        is_whole = found.incarnation is not None and found.model_version is not None
        if found.kind is OrderKind.RUN and not is_whole:
            raise WireError("the order to run lacks processor_id or model_version")
        return found


@dataclass(frozen=True, slots=True)
class Renewal(_Message):
    """A launcher's request to renew its child's lease, by ``POST /v1/lease``."""

    _what = "a renewal"
    _flat = "incarnation"
    attempt: Int
    incarnation: Incarnation


class LeaseGrant(_Message, msgspec.Struct, frozen=True, rename={"answer": "lease"}):
    """The keeper's answer to a renewal; ``lease_ms`` counts from when the renewal was sent."""

    _what: ClassVar[str] = "a lease"
    answer: LeaseAnswer
    lease_ms: Int


@dataclass(frozen=True)
class Started(_Message):
    """A stream container has restored and written its locality; it is about to take input.

    Shapes: ``restored`` {store: {task: Restored}}; ``seconds`` {phase: seconds}.
    """

    _what = "a start"
    _flat = "incarnation"
    incarnation: Incarnation
    restored: Mapping[str, Mapping[str, Restored]] = field(default_factory=dict)
    seconds: Mapping[str, _Seconds] = field(default_factory=dict)

    def within(self, limit_bytes: int) -> Started:
        """Return this report; with sums in place of tasks if its body would be longer."""
        if len(compact_json(self.to_json())) <= limit_bytes:
            return self
        return replace(
            self, restored={s: Restored.sums(tasks.values()) for s, tasks in self.restored.items()}
        )


@dataclass(frozen=True)
class Stopped(_Message):
    """A launcher's report that its stream container has ended, by ``POST /v1/stopped``.

    ``age_ms``: time from the end, as the launcher saw it, to this report.
    """

    _what = "a stop"
    _flat = "incarnation"
    incarnation: Incarnation
    cause: StopCause
    exit_code: Annotated[int, msgspec.Meta(ge=-INT_MAX, le=INT_MAX)]
    last_lines: tuple[str, ...] = ()
    age_ms: Annotated[int, msgspec.Meta(ge=-LONG_MAX, le=LONG_MAX)] = 0

    @property
    def reason(self) -> str:
        """The last line, without its secrets and shortened; empty where it gives no reason."""
        if self.cause not in _ENDED_BY_FAULT or not self.last_lines:
            return ""
        return reason_of(self.last_lines[-1].removeprefix("error: "))

    def _as_received(self) -> Self:
        return replace(self, age_ms=max(self.age_ms, 0))


@dataclass(frozen=True, slots=True)
class Unfit(_Message):
    """A YARN container in which no launcher can start, as its host lacks what the job needs."""

    _what = "an unfit host"
    skein_id: str
    reason: str

    def _as_received(self) -> Self:
        return replace(self, skein_id=self.skein_id[:_MAX_NAME], reason=_line(self.reason))


def _line(text: str) -> str:
    return " ".join(text.split())[:_MAX_NAME]
