"""What ``homeport state`` says of adjunct stores: where they stand, and whether they are right.

They are right where they hold what their streams say, up to where they stand.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from homeport.cli.formatting import number
from homeport.cli.host.job_on_host import JobFolder, RecordedJob
from homeport.cli.host.state_replay import Ranges, Replay
from homeport.cli.host.state_verify import Answer
from homeport.config.errors import ConfigError, StoreError
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.own_manager import ManagerFailedError
from homeport.container.adjunct.recovery import StreamNow, recover
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.kafka.clients import PartitionError
from homeport.container.kafka.log_reader import LogReader, input_ranges, topic_ids
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition, InputRange
from homeport.container.progress.restore import ChangelogRange
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.adjunct.store_look import AdjunctLook, VisibleView, look
from homeport.container.storage.state_comparison import (
    Changelog,
    Comparison,
    compare_with_partitions,
)
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_SCRATCH_BYTES = 32 * 1024 * 1024


class Standing(NamedTuple):
    """How a directory stands to what fills it; UNSET: of adjunct stores alone."""

    kind: str
    behind: int | None
    is_valid: bool
    reason: str | None
    input: str | UnsetType = UNSET
    records: int | UnsetType | None = UNSET
    version: int | UnsetType | None = UNSET
    positions: Mapping[str, int] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class ShownAdjunct:
    """One adjunct store on this host.

    ``behind``: offsets up to the ends of its stream; None: not known. ``reason``: why a start would
    fill it again; None: it would not.
    """

    planned: PlannedStore
    look: AdjunctLook
    behind: int | None
    reason: str | None

    def standing(self) -> Standing:
        """Return how its directory stands, for a script."""
        store, facts = self.planned.store, self.look.facts
        return Standing(
            "broadcast" if store.is_broadcast else "partitioned",
            self.behind,
            self.reason is None,
            self.reason,
            str(store.stream),
            None if facts is None else facts.records,
            None if facts is None else facts.version,
            _texts(self.look.found.positions),
        )

    def __str__(self) -> str:
        """For people."""
        said = [f"from {self.planned.store.stream} up to {_at(self.look.found.positions)}"]
        if self.behind is not None:
            said.append(f"{self.behind} behind")
        facts = self.look.facts
        if facts is not None:
            said.append(number(facts.records, "record"))
            if facts.version is not None:
                said.append(f"version {facts.version}")
        return ", ".join(said)


def shown(
    job: RecordedJob,
    planned: PlannedStore,
    path: Path,
    readers: Mapping[str, LogReader],
    now: ClockReading,
) -> ShownAdjunct:
    """The store ``planned``, whose directory is ``path``."""
    store = planned.store
    # Before the request of the ends: a store that goes on is never seen ahead of them.
    looked = look(path, planned, StorageConfig.of(job.config).stores[store.name].factory)
    own = {store.stream.system: readers[store.stream.system]}
    try:
        topic_id = topic_ids(own, [store.stream])[store.stream]
        ranges = input_ranges(own, planned.partitions)
        names = [] if store.is_bounded else [store.stream.stream]
        kept = own[store.stream.system].deletions_kept(names)
    except PartitionError as error:
        return ShownAdjunct(planned, looked, None, str(error))
    stream = StreamNow(topic_id, ranges, now, kept.get(store.stream.stream))
    recovery = recover(store, looked.found, stream, lambda ssp: _oldest(ranges, ssp))
    positions = looked.found.positions
    behind = sum(max(0, ranges[p].end - at) for p, at in positions.items() if p in ranges)
    reason = None if recovery.refusal is None else recovery.refusal.story
    if not looked.found.exists:
        reason = "nothing is in it"
    return ShownAdjunct(planned, looked, behind, reason)


def _oldest(
    ranges: Mapping[SystemStreamPartition, InputRange], ssp: SystemStreamPartition
) -> InputPosition:
    return InputPosition(ranges[ssp].oldest)


def _texts(positions: Mapping[SystemStreamPartition, int]) -> dict[str, int]:
    return {str(ssp.partition): at for ssp, at in sorted(positions.items())}


def _at(positions: Mapping[SystemStreamPartition, int]) -> str:
    return ", ".join(f"{p}: {at}" for p, at in _texts(positions).items()) or "no partition"


def with_streams(
    job: RecordedJob, folders: Sequence[JobFolder], store: str | None, task: str | None
) -> Iterator[Answer]:
    """Each adjunct store that is there, compared with its stream up to its own position.

    ``store``, ``task``: as for ``chosen_stores`` and ``chosen_tasks``; a store of a container is of
    each of its tasks.
    """
    names = None if task is None else {t.task_name for t in job.chosen_tasks(task)}
    with job.readers() as readers:
        for folder in folders:
            for directory, planned in job.adjuncts.items():
                is_wanted = store in {None, planned.store.name}
                if names is not None and names.isdisjoint(planned.readers):
                    is_wanted = False
                path = folder.path / directory
                if is_wanted and path.is_dir():
                    yield _with_stream(job, planned, path, readers)


def _with_stream(
    job: RecordedJob, planned: PlannedStore, path: Path, readers: Mapping[str, LogReader]
) -> Answer:
    store = planned.store
    task = path.name if store.is_broadcast else str(planned.writer)
    against = f"{store.stream} partition {', '.join(str(p.partition) for p in planned.partitions)}"
    answer = Answer(path, store.name, task, against)
    try:
        # The store before its stream: what it has was in the stream by then.
        factory = StorageConfig.of(job.config).stores[store.name].factory
        with closing(VisibleView(path, factory)) as view:
            positions = {ssp: part.next for ssp, part in view.parts.items()}
            ranges = input_ranges({store.stream.system: readers[store.stream.system]}, positions)
            for ssp, at in positions.items():
                if at > ranges[ssp].end:
                    fault = f"position {at} is beyond the end {ranges[ssp].end} of {ssp}"
                    return answer.but(fault=fault)
            found = _compared(job, planned, view, ranges, readers[store.stream.system])
            return answer.but(positions=_texts(positions), comparison=found)
    except (StoreError, PartitionError, ConfigError, ManagerFailedError) as error:
        return answer.but(fault=str(error))


def _compared(
    job: RecordedJob,
    planned: PlannedStore,
    view: VisibleView,
    ranges: Mapping[SystemStreamPartition, InputRange],
    reader: LogReader,
) -> Comparison:
    store = planned.store
    system = SystemConfig.of(job.config, store.stream.system)
    policy = TopicAdmin(system).topic_config(store.stream.stream)["cleanup.policy"]
    entries = Replay(job.view_of(_owner(job, planned)), planned, reader)
    kept: Ranges = {ssp: ChangelogRange(found.oldest, found.end) for ssp, found in ranges.items()}
    if store.is_bounded:
        # A version is whole, whatever came before it, unless something of it was deleted.
        kept, is_whole = entries.of_version(kept, view.parts)
        forgets = "compact" in policy or not is_whole
    else:
        # Without bootstrap a store begins where the checkpoint was: it need not have what lies
        # before.
        forgets = "delete" in policy or not store.is_bootstrap
    logs = [
        (part.next - 1, Changelog(store.stream, ssp.partition, kept[ssp], forgets))
        for ssp, part in sorted(view.parts.items())
    ]
    memory = RocksDbMemory(_SCRATCH_BYTES, len(logs) + 1)
    with tempfile.TemporaryDirectory(prefix="homeport-") as scratch:
        stores = [RocksDbStore(Path(scratch, str(n)), memory) for n in range(len(logs) + 1)]
        try:
            return compare_with_partitions(view.scan(), logs, entries, stores)
        finally:
            for digests in stores:
                digests.close()


def _owner(job: RecordedJob, planned: PlannedStore) -> ProcessorId:
    """The container that has the store."""
    return next(name for name, c in job.model.containers.items() if planned.writer in c.tasks)
