"""How a stream container ended, and how its stores were restored. PURE."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any

import msgspec

from homeport.config.secret_names import without_secrets
from homeport.job_coordinator.model.wire_form import Long

_MAX_REASON = 300


def reason_of(line: str) -> str:
    """Return ``line`` as the reason of a failure: without secrets, in one line, shortened."""
    return without_secrets(" ".join(line.split()))[:_MAX_REASON]


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
    """Its host did not reach Kafka, for longer than leases are renewed without it; or its launcher
    did not reach the lease keeper, or the AM's package, for so long."""
    DISK_FULL = "disk-full"
    """There was no room for its stores, or for another file of its own."""
    NO_PACKAGE = "no-package"
    """It was never begun: its launcher cannot have, or unpack, the package of its permit."""

    @property
    def is_in_order(self) -> bool:
        """Return whether no transaction can be open after it, so that nothing needs a fence."""
        return self in {StopCause.FINISHED, StopCause.ORDERED}


class RestoreKind(Enum):
    """What of a changelog a store read at a start: nothing, what follows OFFSET, or all of it."""

    NONE = "none"
    TAIL = "tail"
    FULL = "full"


class Restored(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={"from_offset": "from", "to_offset": "to"},
):
    """How one store of one task was restored.

    Offsets of the first and last record read, both None where nothing was read; number of records.
    ``reason``: why a store that was there was not used, and all was read; None where it was used.
    ``refusal``: the kind of that reason. ``tasks``: how many tasks it sums up.
    """

    kind: RestoreKind
    from_offset: Long | None
    to_offset: Long | None
    records: Long
    reason: str | None = None
    refusal: str | None = None
    tasks: Annotated[int, msgspec.Meta(ge=1)] = 1

    def to_json(self) -> dict[str, Any]:
        """Return ``{kind, from, to, records}``, and more where that is not the default."""
        body: dict[str, Any] = msgspec.to_builtins(self)
        return body

    @staticmethod
    def sums(tasks: Iterable[Restored]) -> dict[str, Restored]:
        """Return {what they have in common: their sum} of the tasks of each kind and refusal.

        A sum has no offsets, and the reason of the first.
        """
        groups: dict[tuple[str, ...], list[Restored]] = {}
        for one in tasks:
            group = (one.kind.value,) if one.refusal is None else (one.kind.value, one.refusal)
            groups.setdefault(group, []).append(one)
        return {
            ", ".join((f"{len(alike)} tasks", *group)): msgspec.structs.replace(
                alike[0],
                from_offset=None,
                to_offset=None,
                records=sum(one.records for one in alike),
                tasks=sum(one.tasks for one in alike),
            )
            for group, alike in groups.items()
        }
