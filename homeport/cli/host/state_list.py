"""What ``homeport state ls`` prints: each directory of the job on a host, other jobs' in short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import UNSET, Struct, UnsetType, structs

from homeport.cli.formatting import age, number, size
from homeport.cli.host.job_on_host import JobFolder, RecordedJob
from homeport.cli.host.state_adjuncts import ShownAdjunct, shown
from homeport.cli.options import Item
from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.container.host.clocks import read_clocks
from homeport.container.kafka.client_properties import PartitionError
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.host_directories import DirectoryKind, HostRole, Owner, kind_of
from homeport.container.progress.offset_file import (
    OFFSET_FILE,
    OFFSET_V2_FILE,
    SIDE_INPUT_OFFSETS_FILE,
)
from homeport.container.progress.restore import (
    ChangelogTopic,
    LocalState,
    OffsetRange,
    expected_meta,
    plan_restore,
)
from homeport.container.storage.changelog_reader import ChangelogReader
from homeport.container.storage.directory_lock import Holder
from homeport.container.storage.host_survey import (
    FoundDirectory,
    folders_in,
    found_directories,
    offset_texts,
    state_found,
)
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.wire_form import about

_OTHER = "other job"
_Position = int | None | UnsetType


class ShownDirectory(Struct, frozen=True, kw_only=True):
    """One directory, for a script; of another job's folder only how much it has, or why not."""

    path: Annotated[str, about("of the directory")]
    kind: Annotated[str, about("what it holds; other job: that of another job")]
    store: Annotated[str | UnsetType, about("whose state it is")] = UNSET
    task: Annotated[str | UnsetType, about("the task")] = UNSET
    role: Annotated[
        HostRole | UnsetType | None, about("active or standby; null: of no container here")
    ] = UNSET
    active_host: Host | UnsetType | None = UNSET
    directories: int | UnsetType = UNSET
    bytes: Annotated[int | UnsetType, about("its size")] = UNSET
    files: Annotated[int | UnsetType, about("how many it has")] = UNSET
    newest_ms: Annotated[
        int | UnsetType, about("when its newest file was written, in ms since 1970")
    ] = UNSET
    offset: str | UnsetType | None = UNSET
    offset_v2: str | UnsetType | None = UNSET
    side_input_offsets: str | UnsetType | None = UNSET
    position: Annotated[_Position, about("of the changelog, up to which it has it")] = UNSET
    head: Annotated[_Position, about("the end of the changelog")] = UNSET
    behind: Annotated[_Position, about("records between these two")] = UNSET
    at_head_ms: int | UnsetType | None = UNSET
    holder: Annotated[Holder | UnsetType | None, about("the process that has it open")] = UNSET
    is_valid: Annotated[bool | UnsetType, about("whether a container would begin with it")] = UNSET
    reason: Annotated[str | UnsetType | None, about("why not")] = UNSET
    input: str | UnsetType = UNSET
    records: int | UnsetType | None = UNSET
    version: int | UnsetType | None = UNSET
    positions: Mapping[str, int] | UnsetType = UNSET
    faults: tuple[str, ...] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Row:
    """One directory. ``behind`` counts offsets, of which transaction markers take some.

    ``local``: what a container would find; None: the directory is no task's of the job's.
    ``reason``: why a start would restore in full; None: it would not.
    """

    found: FoundDirectory
    kind: DirectoryKind
    owner: Owner | None
    texts: Mapping[str, str | None]
    local: LocalState | None
    head: int | None
    reason: str | None
    now_ms: int
    adjunct: ShownAdjunct | None = None

    @property
    def position(self) -> int | None:
        """Return what the store holds its changelog up to."""
        return None if self.local is None else self.local.position

    @property
    def behind(self) -> int | None:
        """Count the offsets between the store's position and the changelog's head."""
        if self.head is None or self.position is None:
            return None
        return max(0, self.head - 1 - self.position)

    @property
    def at_head_ms(self) -> int | None:
        """Return when the store last held all that its changelog held, by STORE-META."""
        meta = None if self.local is None else self.local.meta
        return meta.at_head.wall_ms if meta and meta.at_head.wall_ms else None

    def shown(self) -> ShownDirectory:
        """Return it for a script."""
        owner = self.owner
        plain = ShownDirectory(
            path=str(self.found.path),
            kind=self.kind.value,
            store=owner.store if owner else self.found.name.parent.name,
            task=owner.task.task_name if owner else self.found.name.name,
            role=owner.role if owner else None,
            active_host=owner.active_host if owner else None,
            bytes=self.found.extent.size_bytes,
            files=self.found.extent.files,
            newest_ms=self.found.extent.newest_ms,
            offset=self.texts[OFFSET_FILE],
            offset_v2=self.texts[OFFSET_V2_FILE],
            side_input_offsets=self.texts[SIDE_INPUT_OFFSETS_FILE],
            position=self.position,
            head=self.head,
            behind=self.behind,
            at_head_ms=self.at_head_ms,
            holder=self.found.holder,
            is_valid=self.local is not None and self.reason is None,
            reason=self.reason,
        )
        return plain if self.adjunct is None else structs.replace(plain, **self.adjunct.fields())

    def __str__(self) -> str:
        parts = [self._whose(), self._extent()]
        if self.adjunct is not None:
            parts.append(str(self.adjunct))
        elif self.texts[OFFSET_FILE] is not None or self.local is not None:
            parts.append(self._offsets())
        parts.append(self._age())
        if self.found.holder is not None:
            parts.append(f"open by {self.found.holder}")
        reason = self.reason if self.adjunct is None else self.adjunct.reason
        if self.local is not None or self.adjunct is not None:
            parts.append("valid" if reason is None else f"would not be used: {reason}")
        return f"{self.found.name}: {'; '.join(parts)}"

    def _whose(self) -> str:
        if self.owner is None:
            return str(self.kind)
        if self.owner.role is not HostRole.ELSEWHERE:
            return f"{self.owner.role} here"
        host = self.owner.active_host
        return f"elsewhere, active on {host}" if host else "elsewhere"

    def _extent(self) -> str:
        extent = self.found.extent
        return f"{size(extent.size_bytes)} in {number(extent.files, 'file')}"

    def _offsets(self) -> str:
        known = [f"OFFSET {self.texts[OFFSET_FILE] or 'none'}"]
        if self.position is not None:
            known.append(f"position {self.position}")
        if self.head is not None:
            known.append(f"head {self.head}")
        if self.behind is not None:
            known.append(f"{self.behind} behind")
        return ", ".join(known)

    def _age(self) -> str:
        if self.at_head_ms is not None:
            return f"at the head {age(self.now_ms - self.at_head_ms)} ago"
        return f"newest file {age(self.now_ms - self.found.extent.newest_ms)} old"


def items(job: RecordedJob, folders: Sequence[JobFolder], host: Host) -> Iterator[Item]:
    """Yield every directory of the job, then other jobs' in short; of each folder."""
    with job.readers() as readers:
        for folder in folders:
            yield from _rows(job, folder, host, readers)
            yield from _others(folder)


def _rows(
    job: RecordedJob, folder: JobFolder, host: Host, readers: Mapping[str, LogReader]
) -> Iterator[Row]:
    with job.tree(read_only=True) as nodes:
        owners, adjuncts = job.owners(host, nodes), job.adjuncts
    heads = _Heads(KafkaChangelogReader(readers))
    for found in found_directories(folder.path):
        owner = owners.get(found.name)
        now = read_clocks()
        local: LocalState | None = None
        head: int | None = None
        reason: str | None = None
        if owner is not None and owner.store in job.stores:
            local, head, reason = _judged(job, owner, found.path, heads, now)
        kind, texts = kind_of(found.name, owners), offset_texts(found.path)
        planned = adjuncts.get(found.name)
        adjunct = None
        if planned is not None:
            adjunct = shown(job, planned, found.path, readers, now)
        yield Row(found, kind, owner, texts, local, head, reason, now.wall_ms, adjunct)


def _judged(
    job: RecordedJob, owner: Owner, path: Path, heads: _Heads, now: ClockReading
) -> tuple[LocalState | None, int | None, str | None]:
    """Return what a container would find, its changelog's head, and why it would read it all."""
    store, task = job.stores[owner.store], owner.task
    if store.changelog is None:
        return None, None, None
    # Before the request of the head: a store that goes on is never seen ahead of it.
    local = state_found(path, store, task)
    asked = heads.of(store, task.changelog_partition)
    if isinstance(asked, str):
        return local, None, asked
    topic, ends = asked
    if not store.is_kept:
        return local, ends.head, "the store begins empty at each start, by its configuration"
    grouper = job.job.ssp_grouper_factory
    plan = plan_restore(local, ends, expected_meta(store.changelog, topic, task, grouper, now))
    return local, ends.head, plan.reason


class _Heads:
    def __init__(self, reader: ChangelogReader) -> None:
        self._reader = reader
        self._topics: dict[SystemStream, ChangelogTopic | str] = {}

    def of(self, store: StoreConfig, partition: int) -> tuple[ChangelogTopic, OffsetRange] | str:
        """Return the store's topic and the partition's range; else why there are none."""
        changelog = store.changelog
        if changelog is None:
            return "the store has no changelog"
        try:
            if changelog not in self._topics:
                self._topics[changelog] = self._reader.topics([changelog])[changelog]
            topic = self._topics[changelog]
            if isinstance(topic, str):
                return topic
            (ends,) = self._reader.ranges([(changelog, partition)])
        except PartitionError as error:
            self._topics[changelog] = str(error)
            return str(error)
        return topic, ends


@dataclass(frozen=True, slots=True)
class OtherJob:
    """Another job's folder: its directories and bytes, or the ``fault`` that hides them."""

    path: Path
    directories: int = 0
    size_bytes: int = 0
    fault: str | None = None

    def shown(self) -> ShownDirectory:
        """Return it for a script."""
        path = str(self.path)
        if self.fault is not None:
            return ShownDirectory(path=path, kind=_OTHER, faults=(self.fault,))
        count = self.directories
        return ShownDirectory(path=path, kind=_OTHER, directories=count, bytes=self.size_bytes)

    def __str__(self) -> str:
        if self.fault is not None:
            return f"{self.path}: another job; {self.fault}"
        count = number(self.directories, "directory", "directories")
        return f"{self.path.name}: another job; {count}, {size(self.size_bytes)}"


def _others(folder: JobFolder) -> Iterator[OtherJob]:
    for other in () if folder.base is None else folders_in(folder.base):
        if other == folder.path:
            continue
        try:
            extents = [found.extent for found in found_directories(other)]
        except StoreError as error:
            yield OtherJob(other, fault=str(error))
        else:
            yield OtherJob(other, len(extents), sum(extent.size_bytes for extent in extents))
