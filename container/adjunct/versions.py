"""The versions of a bounded data set: the one of each record, the whole ones, the served one.

PURE. Source: ADJUNCT, "Bounded dataset": a marker ends a version. The next one is built beside the
one that is served, and replaces it at once.

Each version is a store of its own, with its `Progress` in each partition beside the entries. A
`Catalogue` has what is settled. After a crash both together restore everything: a version takes no
record below its own position, so records that are read again change nothing.

A data set of one partition is *counted*: its markers are ``begin`` (which may be left out) and
``end``, and versions are numbered as they come. A data set of several partitions is *numbered*: its
markers are ``begin 17`` and ``end 17``, with growing numbers, as retention may have deleted
different markers in each partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from homeport.container.adjunct.steps import AdjunctAction, AdjunctStep
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_PERCENT = 100
_NUMBER_DIGITS = 18


class MarkerKind(StrEnum):
    """The kind of a marker."""

    BEGIN = "begin"
    END = "end"


@dataclass(frozen=True, slots=True)
class Marker:
    """A version begins, or has ended; ``number``: the version's, where the marker has one."""

    kind: MarkerKind
    number: int | None = None


def parse_marker(value: bytes | None) -> Marker | None:
    """Return the marker in ``value``; None where it is no known marker."""
    try:
        kind, _, number = (value or b"").decode("ascii").strip().partition(" ")
        found = MarkerKind(kind)
    except ValueError:
        return None
    if not number:
        return Marker(found)
    is_number = number.isdigit() and len(number) <= _NUMBER_DIGITS
    return Marker(found, int(number)) if is_number else None


class PartitionEnd(StrEnum):
    """Whether a partition has ended a version: not yet, with an end, or without one."""

    OPEN = "open"
    ENDED = "ended"
    ABANDONED = "left"


class VersionFault(StrEnum):
    """Why a version is not served although every partition has ended it."""

    CUT = "its beginning is no longer in the stream"
    HOLE = "records in the middle of it were deleted before they were read"
    BEGAN_AGAIN = "its producer began again in the middle of it"
    SHRUNKEN = "it is much smaller than the one before"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of one version in one partition.

    ``next``: the offset behind its last record or marker there. ``began_ms``: the time of its first
    record, in ms since 1970. ``fault``: why the version must not be served. ``begins`` {version:
    the offset of its ``begin``}, of this version and of those before it in the partition: stores
    reach the disk in any order, and the store of an older version may lack the partition.
    """

    next: int
    records: int = 0
    end: PartitionEnd = PartitionEnd.OPEN
    began_ms: int | None = None
    fault: VersionFault | None = None
    begins: Mapping[int, int] = field(default_factory=dict)


VersionProgress = Mapping[SystemStreamPartition, Progress]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The versions that are settled for good.

    ``settled``: no version up to this number is built any more. ``served``: the one that is served,
    with ``records`` records; None: there is none yet. ``settled_below`` {partition: the offset
    behind all settled versions}.
    """

    settled: int = 0
    served: int | None = None
    records: int = 0
    settled_below: Mapping[SystemStreamPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """Records of one partition, in the order of their offsets.

    ``markers`` {index: the marker there; None: it is not understood}. ``gone_below``: Kafka has
    deleted unread records below this offset; 0: none.
    """

    partition: SystemStreamPartition
    offsets: Sequence[int]
    timestamps: Sequence[int]
    markers: Mapping[int, Marker | None] = field(default_factory=dict)
    gone_below: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """Records ``start`` to before ``stop`` of a run go into the version ``number``."""

    number: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome of a run.

    ``parts`` {version: its new progress in the run's partition}, to be written together with the
    version's records. ``strays``: how many records and markers belong to no version.
    """

    versions: Versions
    writes: tuple[Write, ...]
    parts: Mapping[int, Progress]
    strays: int


@dataclass(frozen=True, slots=True)
class VersionVerdict:
    """The verdict on a whole version; ``fault``: why it is not served; None: it is served."""

    number: int
    records: int
    fault: VersionFault | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """The next offset of a partition, and the version that it is in; None: between two."""

    next: int
    number: int | None


@dataclass(frozen=True)
class Versions:
    """All versions of one store.

    Shapes: ``partitions`` are all that fill it. ``building`` {number: its parts}.
    """

    partitions: tuple[SystemStreamPartition, ...]
    catalogue: Catalogue = field(default_factory=Catalogue)
    building: Mapping[int, VersionProgress] = field(default_factory=dict)

    @staticmethod
    def found(
        partitions: Iterable[SystemStreamPartition],
        catalogue: Catalogue,
        stores: Mapping[int, VersionProgress],
    ) -> Versions:
        """Return the versions that a start finds; ``stores`` {number: the parts of its store}.

        Where a crash took a partition's whole part of an older version, the partition reads it
        again from its ``begin``.
        """
        building = {n: dict(parts) for n, parts in stores.items() if n > catalogue.settled}
        for parts in stores.values():
            for partition, part in parts.items():
                for number, at in part.begins.items():
                    if number > catalogue.settled:
                        known = building.setdefault(number, {})
                        known.setdefault(partition, Progress(at, begins=part.begins))
        return Versions(tuple(sorted(partitions)), catalogue, building)

    @property
    def is_counted(self) -> bool:
        """Return whether versions are numbered as they come."""
        return len(self.partitions) == 1

    def cursor(self, partition: SystemStreamPartition) -> Cursor:
        """Return where reading goes on in the partition: in its first version without an end.

        A later version may have more of it already, where a crash took the end of the older one.
        """
        own = self.of(partition)
        still_in = [Cursor(p.next, n) for n, p in sorted(own.items()) if p.end is PartitionEnd.OPEN]
        if still_in:
            return min(still_in, key=lambda cursor: cursor.next)
        floor = self.catalogue.settled_below.get(partition, 0)
        following = max([floor, *(part.next for part in own.values())])
        if self.is_counted:
            return Cursor(following, max([self.catalogue.settled, *own]) + 1)
        return Cursor(following, None)

    def begun(self, partition: SystemStreamPartition, start: int) -> Versions:
        """Return the same with a partition that is read from ``start`` on.

        The first version in a new partition may lack its beginning.
        """
        known = self.catalogue.settled_below
        if partition in known or any(partition in parts for parts in self.building.values()):
            return self
        catalogue = replace(self.catalogue, settled_below={**known, partition: start})
        found = replace(self, catalogue=catalogue)
        if not self.is_counted or start == 0:
            return found
        number = found.catalogue.settled + 1
        part = Progress(start, fault=VersionFault.CUT)
        return replace(found, building={**self.building, number: {partition: part}})

    def take(self, run: Run) -> Taken:
        """Return the version of each record of ``run``, and the versions afterwards."""
        gone = self._gone(run.partition, run.gone_below) if run.gone_below else {}
        building = {n: dict(parts) for n, parts in self.building.items()}
        for number, part in gone.items():
            building.setdefault(number, {})[run.partition] = part
        protocol = _CountedRun if self.is_counted else _NumberedRun
        return protocol(replace(self, building=building), run, gone).taken()

    def _gone(self, partition: SystemStreamPartition, following: int) -> dict[int, Progress]:
        """Return {version: its part of ``partition``} where Kafka has deleted the rest of the part.

        Such a version can never be whole. Parts of later versions, behind the gap, stay.
        """
        own = self.of(partition)
        gone = {
            n: replace(part, next=following, end=PartitionEnd.ABANDONED)
            for n, part in own.items()
            if part.end is PartitionEnd.OPEN and part.next < following
        }
        return self._counted(own, gone, following) if self.is_counted else gone

    def _counted(
        self, own: Mapping[int, Progress], gone: Mapping[int, Progress], following: int
    ) -> dict[int, Progress]:
        """Return ``gone`` of counted versions: all have ended, the newest goes on to a marker."""
        newest = max([self.catalogue.settled, *own])
        found = {}
        for number, part in gone.items():
            end = PartitionEnd.OPEN if number == newest else PartitionEnd.ENDED
            fault = part.fault or (VersionFault.HOLE if part.records else VersionFault.CUT)
            found[number] = replace(part, end=end, fault=fault)
        last = found.get(newest) or own.get(newest)
        at = self.cursor(self.partitions[0]).next if last is None else last.next
        if at < following:
            found[newest + 1] = Progress(following, fault=VersionFault.CUT)
        return found

    def of(self, partition: SystemStreamPartition) -> dict[int, Progress]:
        """Return {version: its part of the partition}."""
        return {n: parts[partition] for n, parts in self.building.items() if partition in parts}

    def verdict(self, minimum_share_percent: int) -> VersionVerdict | None:
        """Return the verdict on the oldest whole version; None: none is whole.

        After a crash it is the same, as long as nothing is settled. Counted versions come one after
        the other. Where a crash took the end of an older one, a newer one waits for it, since it is
        judged by the records of the older one.
        """
        for number in sorted(self.building):
            parts = self.building[number]
            if all(p in parts and parts[p].end is PartitionEnd.ENDED for p in self.partitions):
                return self._judged(number, minimum_share_percent)
            if self.is_counted:
                break
        return None

    def _judged(self, number: int, minimum_share_percent: int) -> VersionVerdict:
        parts = self.building[number].values()
        records = sum(part.records for part in parts)
        fault = next((part.fault for part in parts if part.fault is not None), None)
        least = minimum_share_percent * self.catalogue.records
        if fault is None and records * _PERCENT < least:
            fault = VersionFault.SHRUNKEN
        return VersionVerdict(number, records, fault)

    def decided(self, verdict: VersionVerdict) -> Versions:
        """Return the same after the verdict; older versions without an end are gone."""
        parts = self.building[verdict.number]
        before = self.catalogue
        below = {p: max(before.settled_below.get(p, 0), parts[p].next) for p in self.partitions}
        catalogue = replace(before, settled=verdict.number, settled_below=below)
        if verdict.fault is None:
            catalogue = replace(catalogue, served=verdict.number, records=verdict.records)
        building = {n: own for n, own in self.building.items() if n > verdict.number}
        return replace(self, catalogue=catalogue, building=building)

    def late(self, now_ms: int, late_ms: int) -> tuple[int, ...]:
        """Return the versions under way that began more than ``late_ms`` ago."""
        return tuple(
            number
            for number, parts in sorted(self.building.items())
            if (began := began_ms(parts)) is not None and now_ms - began > late_ms
        )


def began_ms(parts: VersionProgress) -> int | None:
    """Return the time of the first record of ``parts``; None: they have none."""
    return min((p.began_ms for p in parts.values() if p.began_ms is not None), default=None)


class _RunInVersions(ABC):
    """One run on its way into the versions. Each kind of marker has a subclass."""

    def __init__(self, versions: Versions, run: Run, changed: Iterable[int]) -> None:
        self._versions = versions
        self._run = run
        self._ssp = run.partition
        self._own = versions.of(run.partition)
        self._cursor = versions.cursor(self._ssp)
        self._writes: list[Write] = []
        self._changed = set(changed)
        self._strays = 0

    def taken(self) -> Taken:
        offsets, at = self._run.offsets, 0
        for index, marker in sorted(self._run.markers.items()):
            if offsets[index] < self._cursor.next:
                continue
            self._records(at, index)
            self._mark(marker, offsets[index])
            at = index + 1
        self._records(at, len(offsets))
        building = {n: dict(parts) for n, parts in self._versions.building.items()}
        for number in self._changed:
            building.setdefault(number, {})[self._ssp] = self._own[number]
        changed = {number: self._own[number] for number in sorted(self._changed)}
        versions = replace(self._versions, building=building)
        return Taken(versions, tuple(self._writes), changed, self._strays)

    def _records(self, start: int, stop: int) -> None:
        offsets = self._run.offsets
        start = max(start, bisect_left(offsets, self._cursor.next))
        if start >= stop:
            return
        number, following = self._cursor.number, offsets[stop - 1] + 1
        self._cursor = Cursor(following, number)
        if number is None:
            self._strays += stop - start
            return
        part = self._own.get(number) or Progress(offsets[start])
        began_ms = self._run.timestamps[start] if part.began_ms is None else part.began_ms
        records = part.records + stop - start
        self._set(number, replace(part, next=following, records=records, began_ms=began_ms))
        self._writes.append(Write(number, start, stop))

    def _set(self, number: int, part: Progress) -> None:
        self._own[number] = part
        self._changed.add(number)

    @abstractmethod
    def _mark(self, marker: Marker | None, offset: int) -> None:
        """Take the marker at ``offset``."""


class _CountedRun(_RunInVersions):
    """A run of the one partition of a data set: versions are numbered as they come."""

    def _mark(self, marker: Marker | None, offset: int) -> None:
        number = self._cursor.number or 1
        part = self._own.get(number) or Progress(offset)
        if marker is None:
            self._strays += 1
        elif marker.kind is MarkerKind.END or part.records:
            began_again = None if marker.kind is MarkerKind.END else VersionFault.BEGAN_AGAIN
            fault = part.fault or began_again
            self._set(number, replace(part, next=offset + 1, end=PartitionEnd.ENDED, fault=fault))
            self._enter_next(number, offset)
            return
        else:
            part = replace(part, fault=None)
        self._set(number, replace(part, next=offset + 1))
        self._cursor = Cursor(offset + 1, number)

    def _enter_next(self, number: int, offset: int) -> None:
        number, following = number + 1, offset + 1
        while (known := self._own.get(number)) is not None:
            following = known.next
            if known.end is PartitionEnd.OPEN:
                break
            number += 1
        self._cursor = Cursor(following, number)


class _NumberedRun(_RunInVersions):
    """A run of one partition of several: each marker has the number of its version."""

    def _mark(self, marker: Marker | None, offset: int) -> None:
        number = self._cursor.number
        if marker is None or marker.number is None:
            self._abandon(offset + 1)
            self._strays += 1
        elif marker.kind is MarkerKind.BEGIN:
            if marker.number != number:
                # The old version may reach the disk before the new one: the marker is read again.
                self._abandon(offset)
            self._enter(marker.number, offset)
        elif marker.number == number:
            part = self._own[number]
            self._set(number, replace(part, next=offset + 1, end=PartitionEnd.ENDED))
            self._cursor = Cursor(offset + 1, None)
        else:
            self._abandon(offset + 1)
            self._strays += 1

    def _abandon(self, following: int) -> None:
        """Leave the version of the cursor, if any, without an end: it never becomes whole."""
        number = self._cursor.number
        if number is not None:
            self._set(
                number, replace(self._own[number], next=following, end=PartitionEnd.ABANDONED)
            )
        self._cursor = Cursor(following, None)

    def _enter(self, number: int, offset: int) -> None:
        known = self._own.get(number)
        if number <= self._versions.catalogue.settled:
            self._strays += 1
        elif known is None:
            settled, parts = self._versions.catalogue.settled, self._own.values()
            before = {n: at for part in parts for n, at in part.begins.items() if n > settled}
            self._set(number, Progress(offset + 1, begins={**before, number: offset}))
            self._cursor = Cursor(offset + 1, number)
        elif offset < known.next:
            is_open = known.end is PartitionEnd.OPEN
            self._cursor = Cursor(known.next, number if is_open else None)
        else:
            fault = VersionFault.BEGAN_AGAIN if known.records else None
            part = replace(
                known, next=offset + 1, end=PartitionEnd.OPEN, fault=known.fault or fault
            )
            self._set(number, part)
            self._cursor = Cursor(offset + 1, number)


def flush_step(store: str, verdict: VersionVerdict) -> AdjunctStep | None:
    """Return the step before the plan, which may go on beside batches; None: there is none.

    After it the version is judged again, since it may have got a fault meanwhile.
    """
    if verdict.fault is not None:
        return None
    return AdjunctStep(AdjunctAction.FLUSH_VERSION, store, verdict.number)


def verdict_plan(
    store: str, versions: Versions, verdict: VersionVerdict
) -> tuple[AdjunctStep, ...]:
    """Return the steps of ``store``; the container may die between any two.

    The version is on the disk before it is served. The catalogue is replaced in one step. A crash
    before that step has the version judged again, with the same verdict. After that step all
    versions that the catalogue does not name are removed.
    """
    served = versions.catalogue.served
    gone = [n for n in sorted(versions.building) if n <= verdict.number]
    steps = [AdjunctStep(AdjunctAction.WRITE_CATALOGUE, store, verdict.number)]
    if verdict.fault is None:
        steps.append(AdjunctStep(AdjunctAction.SWITCH_VERSION, store, verdict.number))
        gone = [*([] if served is None else [served]), *gone[:-1]]
    return (*steps, *(AdjunctStep(AdjunctAction.DROP_VERSION, store, number) for number in gone))


def removable(catalogue: Catalogue, found: Iterable[int]) -> tuple[int, ...]:
    """Return those of the ``found`` versions, which are on the disk, that a start removes."""
    return tuple(n for n in sorted(found) if n <= catalogue.settled and n != catalogue.served)
