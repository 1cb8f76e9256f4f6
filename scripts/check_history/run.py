"""What the rules look at: one job's run, with its incarnations: each one life of a processor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .reading import EVENTS, Event, Job, offsets_of

Key = tuple[str, int]

COMMITTED, ENDING = "transaction-committed", "transaction-ending"


@dataclass(frozen=True)
class Transaction:
    """One transaction of a container.

    ``began_at``: a time at which it was surely not committed yet. ``committed`` None: no process
    recorded the result, so it may or may not have been committed. ``follows``: the lines of the one
    before it are there, unless it is the first of which any are.
    """

    began_at: int
    committed: Event | None
    first: Mapping[str, int]
    last: Mapping[str, int]
    follows: bool = True


@dataclass
class Incarnation:
    """(processor, epoch), and its events by role and name, each list by time."""

    key: Key
    events: dict[tuple[str, str], list[Event]] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)

    def __str__(self) -> str:
        return f"processor {self.key[0]} epoch {self.key[1]}"

    def all(self, role: str, name: str | None = None) -> list[Event]:
        """Return the events of a role, of one name or of all; by time."""
        if name is not None:
            return self.events.get((role, name), [])
        found = [e for (r, _), events in self.events.items() if r == role for e in events]
        # By line within a file, as several facts may fall into one millisecond.
        return sorted(found, key=lambda event: (event.at, event.path, event.line))

    def one(self, role: str, name: str) -> Event | None:
        """Return the first such event."""
        found = self.all(role, name)
        return found[0] if found else None

    @property
    def began_at(self) -> int:
        """When it is first heard of, from anybody."""
        return min(event.at for events in self.events.values() for event in events)

    @property
    def own(self) -> list[Event]:
        """What its stream container wrote, by time."""
        return self.all("container")

    @property
    def own_began_at(self) -> int | None:
        """When its container had fenced the earlier ones, else first spoke; None: it never did."""
        fenced = self.one("container", "fenced")
        if fenced is not None:
            return fenced.at
        return self.own[0].at if self.own else None

    @property
    def ended_at(self) -> int | None:
        """When its launcher saw it end, else its own last word; None: it never ran."""
        stopped = self.one("launcher", "child-stopped")
        if stopped is not None:
            return stopped.at
        return self.own[-1].at if self.own else None

    @property
    def fences(self) -> set[Key]:
        """The incarnations that it fenced, as it says."""
        fenced = self.one("container", "fenced")
        listed = fenced.fields.get("fenced") if fenced is not None else None
        return {
            (str(item.get("processor_id")), int(item.get("epoch", -1)))
            for item in listed or ()
            if isinstance(item, dict)
        }

    @cached_property
    def tasks(self) -> set[str]:
        """Every task that it is known to have had."""
        found: set[str] = set()
        for event in self.own:
            if isinstance(event.fields.get("tasks"), list):
                found.update(map(str, event.fields["tasks"]))
            if isinstance(event.fields.get("task"), str):
                found.add(event.fields["task"])
            if event.name in {COMMITTED, ENDING} and isinstance(event.fields.get("offsets"), dict):
                found.update(event.fields["offsets"])
        return found

    @property
    def is_standby(self) -> bool:
        """Whether it says so."""
        return bool(self.said("processor_role") == "standby")

    def said(self, key: str) -> Any:  # noqa: ANN401 - a field of JSON
        """Return the first value of a field in any of its events; None where no event has it."""
        values = (e.fields.get(key) for role in ("container", "driver") for e in self.all(role))
        return next((value for value in values if value is not None), None)

    def shares_task(self, other: Incarnation) -> bool:
        """Return whether both wrote for one task, as incarnations of one processor do."""
        return self.key[0] == other.key[0] or bool(self.tasks & other.tasks)


def incarnations_of(job: Job) -> list[Incarnation]:
    """Return all incarnations in the order of their permits, a processor's by epoch."""
    found: dict[Key, Incarnation] = {}
    for event in job.events:
        if event.processor_id is not None and event.epoch is not None:
            key = (event.processor_id, event.epoch)
            incarnation = found.setdefault(key, Incarnation(key))
            incarnation.events.setdefault((event.role, event.name), []).append(event)
    for incarnation in found.values():
        incarnation.transactions = _transactions(incarnation.own)
    return sorted(found.values(), key=lambda i: (i.began_at, i.key))


def _transactions(own: Iterable[Event]) -> list[Transaction]:
    result: list[Transaction] = []
    open_one: Event | None = None
    follows = True
    for event in own:
        follows &= event.follows
        if event.name == ENDING:
            if open_one is not None:
                result.append(_transaction(open_one, None, follows=follows))
                follows = True
            open_one = event
        elif event.name == COMMITTED:
            # Alone, where the line before it is lost, it says which offsets in an earlier release.
            if open_one is not None or "offsets" in event.fields:
                result.append(_transaction(open_one or event, event, follows=follows))
                follows = True
            open_one = None
    if open_one is not None:
        result.append(_transaction(open_one, None, follows=follows))
    return result


def _transaction(begun: Event, committed: Event | None, *, follows: bool) -> Transaction:
    return Transaction(
        begun.at, committed, offsets_of(begun, first=True), offsets_of(begun), follows
    )


@dataclass(frozen=True)
class Run:
    """What the rules look at; ``incarnations`` in the order of their permits.

    ``first_epochs``: {processor: the first epoch of whose permit on nothing is gone}.
    """

    job: Job
    incarnations: tuple[Incarnation, ...]
    allow_gaps: bool = False
    first_epochs: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job, *, allow_gaps: bool = False) -> Run:
        """Return the run of a job."""
        run = cls(job, tuple(incarnations_of(job)), allow_gaps)
        for incarnation in run.incarnations:
            granted = incarnation.one("driver", "permit-granted")
            if granted is not None and run.is_kept(EVENTS, granted.at):
                processor_id, epoch = incarnation.key
                run.first_epochs[processor_id] = min(
                    epoch, run.first_epochs.get(processor_id, epoch)
                )
        return run

    def is_kept(self, kind: str, at: int) -> bool:
        """Return whether nothing of a kind is gone that was written at this time or later."""
        until = self.job.trimmed.get(kind)
        return until is None or self.is_after(at, until)

    def has_permit(self, incarnation: Incarnation) -> bool:
        """Return whether nothing is gone that was written after its permit, or a repetition.

        Epochs grow: so it is with all later ones of its processor. Transactions apart, here too.
        """
        first = self.first_epochs.get(incarnation.key[0])
        return EVENTS not in self.job.trimmed or (first is not None and incarnation.key[1] >= first)

    def is_whole(self, incarnation: Incarnation) -> bool:
        """Return whether nothing is gone of what was written of it, transactions apart.

        The first permit that is there may repeat one that is not: a driver repeats that of a
        launcher that it adopts.
        """
        first = self.first_epochs.get(incarnation.key[0])
        return self.has_permit(incarnation) and (
            EVENTS not in self.job.trimmed or incarnation.key[1] != first
        )

    def is_after(self, later: int, earlier: int) -> bool:
        """Return whether ``later`` is surely after ``earlier``."""
        return later > earlier + self.job.tolerance_ms

    @cached_property
    def standalone(self) -> frozenset[str]:
        """The processors that a user has started: their own processes wrote a history, no AM's."""
        return frozenset(
            event.processor_id
            for event in self.job.events
            if event.role == "processor" and event.processor_id is not None
        )

    def has_role(self, role: str) -> bool:
        """Return whether anybody of that role wrote a history."""
        return any(event.role == role for event in self.job.events)
