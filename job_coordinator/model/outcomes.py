"""How a stream container ended, and how its stores were restored. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from homeport.config.errors import WireError
from homeport.job_coordinator.model.json_values import (
    optional_field,
    optional_number,
    required_number,
    shown,
)


class StopCause(Enum):
    """Why a stream container ended; this, never the exit code, decides what the allocator does."""

    FINISHED = "finished"
    ORDERED = "ordered"
    SIGNALLED = "signalled"
    FAILED = "failed"
    LEASE_LOST = "lease-lost"
    KILLED = "killed"
    UNAVAILABLE = "unavailable"
    CUT_OFF = "cut-off"
    """Its host did not reach Kafka, for longer than leases are renewed without it."""
    DISK_FULL = "disk-full"
    """There was no room for its stores, or for another file of its own."""
    NO_PACKAGE = "no-package"
    """It was never begun: its launcher cannot have, or unpack, the package of its permit."""


class RestoreKind(Enum):
    """What of a changelog a store read at a start: nothing, what follows OFFSET, or all of it."""

    NONE = "none"
    TAIL = "tail"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Restored:
    """How one store of one task was restored.

    Offsets of the first and last record read, both None where nothing was read; number of records.
    ``reason``: why a store that was there was not used, and all was read; None where it was used.
    ``refusal``: the kind of that reason. ``tasks``: of how many tasks it is the sum.
    """

    kind: RestoreKind
    from_offset: int | None
    to_offset: int | None
    records: int
    reason: str | None = None
    refusal: str | None = None
    tasks: int = 1

    def to_json(self) -> dict[str, Any]:
        """``{kind, from, to, records}``; ``reason``, ``refusal``, ``tasks`` where they say more."""
        return {
            "kind": self.kind.value,
            "from": self.from_offset,
            "to": self.to_offset,
            "records": self.records,
            **({} if self.reason is None else {"reason": self.reason}),
            **({} if self.refusal is None else {"refusal": self.refusal}),
            **({} if self.tasks == 1 else {"tasks": self.tasks}),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Restored:
        """What ``body`` says of one store; WireError where a field is missing or wrong."""
        try:
            kind = RestoreKind(body.get("kind"))
        except ValueError:
            raise WireError(f"unknown kind of restore {shown(body.get('kind'))}") from None
        return Restored(
            kind=kind,
            from_offset=optional_number(body, "from"),
            to_offset=optional_number(body, "to"),
            records=required_number(body, "records"),
            reason=optional_field(body, "reason", str),
            refusal=optional_field(body, "refusal", str),
            tasks=optional_field(body, "tasks", int) or 1,
        )

    @staticmethod
    def sums(tasks: Iterable[Restored]) -> dict[str, Restored]:
        """{what they have in common: their sum} of the tasks of each kind and refusal.

        A sum has no offsets, and the reason of the first.
        """
        groups: dict[tuple[str, ...], list[Restored]] = {}
        for one in tasks:
            group = (one.kind.value,) if one.refusal is None else (one.kind.value, one.refusal)
            groups.setdefault(group, []).append(one)
        return {
            ", ".join((f"{len(alike)} tasks", *group)): replace(
                alike[0],
                from_offset=None,
                to_offset=None,
                records=sum(one.records for one in alike),
                tasks=sum(one.tasks for one in alike),
            )
            for group, alike in groups.items()
        }
