"""InputConsumer: the job's input of this container, one Arrow table per micro-batch."""

import logging
import math
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from homeport.config.settings.input_section import LostInput
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.arrow_records import ARROW
from homeport.container.kafka.batch_tables import Piece, table_of
from homeport.container.kafka.client_properties import input_properties, know_topics, unread
from homeport.container.kafka.record_reader import Fault, QueueReader, Reader, Taken, reader_of
from homeport.container.progress.input_position import InputPosition, next_position
from homeport.container.progress.input_schedule import (
    BOOTSTRAP_TIER,
    NONE_STORED,
    InputSchedule,
    StoredInputs,
    seconds_left,
    tier_of,
)
from homeport.container.progress.pace import Pace
from homeport.container.progress.restore import OffsetRange
from homeport.job_coordinator.kafka.clients import consumer, error_of, is_end
from homeport.job_coordinator.kafka.transient_errors import is_transient
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)

MAX_BYTES = 64 * 1024 * 1024
_STABLE_S = 2.0
_SAY_S = 5.0
RANGE_S = 10.0
"""The time limit for the offsets of a partition's beginning and end."""
_FEW = 16
"""The ends of so many partitions cost nothing to look at."""
_LOOKS, _LATEST_S = 1 / 50, 0.25
"""The share of time for looks at the ends of more, and the age of a look at most."""


@dataclass(frozen=True)
class Reading:
    """How input is read.

    ``max_bytes``: a batch with so many bytes of values takes no more records. ``is_native``:
    whether records go into Arrow without Python objects, where that can be.
    """

    max_bytes: int = MAX_BYTES
    is_native: bool = True


@dataclass(frozen=True)
class MicroBatch:
    """Rows of ``BATCH_SCHEMA``, sorted by task, stream, partition and offset.

    ``first``, ``processed``: the first and the last offset of each of the task's partitions that
    has rows here.
    """

    table: pa.Table
    size_bytes: int
    first: Mapping[TaskName, Mapping[SystemStreamPartition, int]]
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]


_USUAL = Reading()
_Taken = Taken[SystemStreamPartition, pa.RecordBatch]


class InputConsumer:
    """Reads the partitions of its tasks, each from the task's next offset. Not thread-safe.

    Each tier of a system has a client of its own: a client that waits for a higher tier keeps its
    fetched records, and no partition is fetched twice. One that waits for a bootstrap stream is
    assigned when it begins.

    ``starts`` {task: {partition: next offset}}: a partition of several tasks is read once, from the
    smallest offset; each task sees only what follows its own. ``ends`` {partition: its end}:
    bootstrap streams are read up to there before others; it is what is known of a partition that
    waits. ``lost``: is called with each gap that the job skips. ``stored``: the partitions that
    fill adjunct stores. After a gap they continue at the oldest record, whatever the stream's
    policy: a store knows what it lacks. ``release``: gets each client at the end.
    """

    def __init__(
        self,
        systems: Mapping[str, SystemConfig],
        starts: Mapping[TaskName, Mapping[SystemStreamPartition, int]],
        connect: Callable[[SystemConfig, Mapping[str, Any]], Consumer] | None = None,
        *,
        ends: Mapping[SystemStreamPartition, int] | None = None,
        reading: Reading = _USUAL,
        lost: Callable[[SystemStreamPartition, InputPosition], None] | None = None,
        stored: StoredInputs = NONE_STORED,
        release: Callable[[Consumer], object] = operator.methodcaller("close"),
    ) -> None:
        self._stored = stored
        self._release = release
        self._systems = systems
        self._max_bytes = reading.max_bytes
        self._lost = lost
        self._tasks: dict[SystemStreamPartition, list[tuple[TaskName, int]]] = {}
        for task_name, offsets in sorted(starts.items()):
            for ssp, offset in offsets.items():
                self._tasks.setdefault(ssp, []).append((task_name, offset))
        self._next = {ssp: min(o for _, o in tasks) for ssp, tasks in self._tasks.items()}
        self._starts = dict(self._next)
        self._policies = {ssp: systems[ssp.system].input_policy(ssp.stream) for ssp in self._next}
        tiers = {ssp: tier_of(policy) for ssp, policy in self._policies.items()}
        by_task = {ssp: {task for task, _ in tasks} for ssp, tasks in self._tasks.items()}
        self._first_ends = ends or {}
        schedule = InputSchedule(tiers, by_task, stored.partitions)
        self._schedule = schedule.begun(self._next, self._first_ends)
        # Whether a store awaits a version is first asked by a poll: until then none is late.
        self._waiting = self._schedule.waiting(self._schedule.held_by(stored.partitions))
        self._served = self._read_places()
        self._had_bootstrap = False
        """Whether the last batch was of bootstrap streams."""
        self._said_s = -math.inf
        self._open_ends = OpenEnds(time.monotonic, self._stable_end)
        self._looks, self._is_known = Pace(_LOOKS), False
        self._ahead: dict[SystemStreamPartition, int] = {}
        self._began_s, self._began_left = time.monotonic(), self._schedule.left(self._next)
        places = sorted({(tier, ssp.system) for ssp, tier in tiers.items()})
        self._clients: dict[tuple[int, str], Consumer] = {}
        self._readers: dict[tuple[int, str], Reader[SystemStreamPartition, pa.RecordBatch]] = {}
        rows = partial(_first_row, self._tasks)
        for tier, system in places:
            own = [s for s in self._next if s.system == system and tiers[s] == tier]
            properties = input_properties(systems[system], reading.max_bytes // len(places))
            if tier == BOOTSTRAP_TIER:
                # A partition may end with a marker, which is no record: only this shows its end.
                properties["enable.partition.eof"] = True
            client = (connect or consumer)(systems[system], properties)
            know_topics(client, systems[system], sorted({ssp.stream for ssp in own}))
            read = [ssp for ssp in own if ssp not in self._waiting]
            # In the order of the rows of a batch, which then need not be sorted.
            names = {(ssp.stream, ssp.partition): ssp for ssp in sorted(own, key=rows)}
            reader = reader_of(client, names, ARROW, native=reading.is_native)
            client.assign([self._place(ssp) for ssp in read])
            reader.assigned(read)
            self._clients[tier, system], self._readers[tier, system] = client, reader

    def _place(self, ssp: SystemStreamPartition) -> TopicPartition:
        return TopicPartition(ssp.stream, ssp.partition, self._next[ssp])

    def _client(self, ssp: SystemStreamPartition) -> Consumer:
        return self._clients[self._schedule.tiers[ssp], ssp.system]

    def _read_places(self) -> list[tuple[int, str]]:
        """Return the tier and system of each client that has a partition to read."""
        read = self._schedule.tiers.keys() - self._waiting
        return sorted({(self._schedule.tiers[ssp], ssp.system) for ssp in read})

    def begin_released(self) -> None:
        """Begin to read the partitions that wait no longer.

        Raises:
            StoreError: a store has no version, and nothing has come of it for too long.
        """
        awaited = self._stored.awaited()
        if not self._waiting:
            return
        released = self._waiting - self._schedule.waiting(awaited)
        self._waiting -= released
        for ssp in sorted(released):
            self._begin_at(ssp)
        if released:
            self._served, left = self._read_places(), len(self._waiting)
            _LOG.info("%d partitions begin; %d wait for bootstrap streams", len(released), left)
        if self._waiting and not self._schedule.is_bootstrapping and self._is_to_say():
            for what in sorted(set(awaited.values())):
                _LOG.info("other inputs wait for the first version of %s", what)

    def poll(self, max_rows: int, timeout_s: float) -> MicroBatch | None:
        """Return the records that have arrived, ``max_rows`` per system at most.

        None after ``timeout_s``. A batch has one tier, and exceeds the bound in bytes by less than
        one record per system. This never waits for a batch to fill.

        Raises:
            PartitionError: a partition cannot be read any more.
            LostInputError: Kafka has deleted records before they were read.
            StoreError: the same, and the stream's store cannot go on; or a store has no version.
            UnavailableError: Kafka is away for longer than the library waits.
        """
        found: list[_Taken] = []
        self.begin_released()
        # In turns: a store may bootstrap for hours, and its records are always at hand.
        is_filling = self._schedule.is_bootstrapping or bool(self._waiting)
        order = self._schedule.order(others_first=self._had_bootstrap and is_filling)
        served = [place for tier in order for place in self._served if place[0] == tier]
        if len(served) > 1:
            found = self._take(served, max_rows, 0)
        if not found:
            found = self._take(served, max_rows, timeout_s / max(1, len(served)))
        lasts = {run.place: run.last for taken in found for run in taken.runs}
        self._had_bootstrap = any(self._schedule.tiers[s] == BOOTSTRAP_TIER for s in lasts)
        if self._schedule.is_bootstrapping:
            self._pass_bootstrap(lasts)
        # Also when records came: another partition may stand still.
        for line in self._open_ends.reports(self._stands):
            _LOG.warning("%s", line)
        return self._batch(found) if found else None

    def _take(
        self, places: Sequence[tuple[int, str]], max_rows: int, patience_s: float
    ) -> list[_Taken]:
        """Return the records of the first tier that has some."""
        found: list[_Taken] = []
        served = None
        for place in places:
            if found and place[0] != served:
                break
            served = place[0]
            patience = 0 if found else patience_s
            taken = self._readers[place].take(max_rows, self._max_bytes, patience)
            for fault in taken.faults:
                self._passed_over(place, fault)
            if taken.runs:
                found.append(taken)
        return found

    @property
    def is_native(self) -> bool:
        """Return whether records go into Arrow without Python objects."""
        return all(isinstance(reader, QueueReader) for reader in self._readers.values())

    @property
    def following(self) -> Mapping[SystemStreamPartition, int]:
        """Return {partition: the next offset}, after passed markers as far as these are known."""
        return self._next

    def lag(self) -> int:
        """Return the number of known records that ``poll`` has not returned yet."""
        self._look()
        return sum(max(0, end - self._next[ssp]) for ssp, end in self._ahead.items())

    def lag_of(self, partitions: Iterable[SystemStreamPartition]) -> int | None:
        """Return the ``lag`` of ``partitions``; None: an end is not known yet."""
        places = [(self._known_end(ssp), self._next[ssp]) for ssp in partitions]
        if any(end < 0 for end, _ in places):
            return None
        return sum(max(0, end - following) for end, following in places)

    def held(self) -> Mapping[SystemStreamPartition, float]:
        """Return {partition behind an open transaction: the seconds that it has stood}."""
        return self._open_ends.held()

    def bootstrap_left(
        self, partitions: Iterable[SystemStreamPartition]
    ) -> tuple[int, float | None] | None:
        """Return how many offsets of ``partitions`` other inputs wait for, and the seconds left.

        None: no input waits for them. Seconds None: no record of them has come yet.
        """
        ends = self._schedule.ends
        own = replace(self._schedule, ends={ssp: ends[ssp] for ssp in partitions if ssp in ends})
        if not own.is_bootstrapping:
            return None
        left, now_s = own.left(self._next), time.monotonic()
        return left, seconds_left(self._began_s, own.left(self._starts), now_s, left)

    def is_at_end(self) -> bool:
        """Return whether every partition has been read as far as it is known to go.

        One more offset counts as read: it may be a marker. A record there came just now.
        """
        self._look()
        return self._is_known and all(
            end <= self._next[ssp] + 1 for ssp, end in self._ahead.items()
        )

    def is_caught_up(self) -> bool:
        """Return whether nothing waits after an empty poll: every partition has answered.

        Offsets alone do not show it: a marker's offset has no record.
        """
        self._look()
        return self._is_known and not self._waiting

    def _look(self) -> None:
        """Note which ends lie ahead; of many partitions, in a small share of the time only."""
        began_s = time.monotonic()
        if len(self._next) > _FEW and self._looks.left_s(began_s, most_s=_LATEST_S) > 0:
            return
        ends = {ssp: self._known_end(ssp) for ssp in self._next}
        self._is_known = min(ends.values(), default=0) >= 0
        self._ahead = {ssp: end for ssp, end in ends.items() if end > self._next[ssp]}
        self._looks.took(began_s, time.monotonic())

    def _known_end(self, ssp: SystemStreamPartition) -> int:
        """Return the partition's end in its last answer; below 0 before the first one."""
        if ssp in self._waiting:
            return self._first_ends.get(ssp, -1)
        place = TopicPartition(ssp.stream, ssp.partition)
        end: int = self._client(ssp).get_watermark_offsets(place, cached=True)[1]
        return end

    def _stands(self) -> dict[SystemStreamPartition, tuple[int, int]]:
        """Return {partition that is read: (next offset, end at its last answer)}."""
        own = {ssp: at for ssp, at in self._next.items() if ssp not in self._waiting}
        return {ssp: (following, self._known_end(ssp)) for ssp, following in own.items()}

    def _stable_end(self, ssp: SystemStreamPartition) -> int | None:
        """Return the last stable offset, by a request; None without an answer."""
        place = TopicPartition(ssp.stream, ssp.partition)
        try:
            end: int = self._client(ssp).get_watermark_offsets(place, timeout=_STABLE_S)[1]
        except KafkaException:
            return None
        return end

    def close(self) -> None:
        """End the reading."""
        for place, client in self._clients.items():
            self._readers[place].close()
            self._release(client)
        self._clients.clear()
        self._readers.clear()

    def _pass_bootstrap(self, lasts: Mapping[SystemStreamPartition, int]) -> None:
        """Update the schedule by the last offsets read; log when the other inputs begin."""
        read = {ssp: last + 1 for ssp, last in lasts.items()}
        self._schedule = self._schedule.passed({**self._next, **read})
        if self._schedule.is_bootstrapping:
            self._say_what_waits()
        else:
            _LOG.info("bootstrap streams are read to their ends: other inputs begin")

    def _say_what_waits(self) -> None:
        """Log what the other inputs wait for, now and every few seconds."""
        if not self._is_to_say():
            return
        for ssp, end in sorted(self._schedule.ends.items()):
            place = f"{ssp.system_stream} partition {ssp.partition}"
            _LOG.info(
                "other inputs wait for bootstrap stream %s: at %d of %d",
                place,
                self._next[ssp],
                end,
            )
        left, now_s = self._schedule.left(self._next), self._said_s
        seconds = seconds_left(self._began_s, self._began_left, now_s, left)
        if seconds is not None:
            _LOG.info("other inputs begin in about %.0f s: %d records are left", seconds, left)

    def _is_to_say(self) -> bool:
        now_s = time.monotonic()
        is_due = now_s - self._said_s >= _SAY_S
        if is_due:
            self._said_s = now_s
        return is_due

    def _passed_over(self, at: tuple[int, str], fault: Fault[SystemStreamPartition]) -> None:
        ssp, offset, error = fault
        if ssp is not None and is_end(error):
            # Records before it are in an earlier batch, or in this one.
            self._next[ssp] = max(self._next[ssp], offset)
        elif ssp is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - librdkafka's name
            self._go_on_elsewhere(at[0], ssp, offset)
        elif not is_transient(error):
            name = f"the input {ssp.stream} partition {ssp.partition}" if ssp else "input"
            raise unread(self._systems[at[1]], f"reading {name} at offset {offset}", error)

    def _go_on_elsewhere(self, tier: int, ssp: SystemStreamPartition, asked: int) -> None:
        """Continue at the offset of the stream's policy: the next offset does not exist."""
        client, system = self._clients[tier, ssp.system], self._systems[ssp.system]
        place = TopicPartition(ssp.stream, ssp.partition)
        try:
            oldest, end = client.get_watermark_offsets(place, timeout=RANGE_S)
        except KafkaException as error:
            what = f"asking the offsets of {ssp.stream} partition {ssp.partition}"
            raise unread(system, what, error_of(error)) from None
        following = max(self._next[ssp], asked)
        lost = LostInput.EARLIEST if ssp in self._stored.partitions else self._policies[ssp].lost
        position = next_position(ssp, following, OffsetRange(oldest, end), lost)
        client.incremental_unassign([place])
        self._next[ssp] = position.offset
        self._begin_at(ssp)
        if position.lost and self._lost is not None:
            self._lost(ssp, position)

    def _begin_at(self, ssp: SystemStreamPartition) -> None:
        """Read the partition, which its client has not been assigned, from the next offset on."""
        self._client(ssp).incremental_assign([self._place(ssp)])
        self._readers[self._schedule.tiers[ssp], ssp.system].assigned([ssp])

    def _batch(self, found: Sequence[_Taken]) -> MicroBatch | None:
        pieces: list[Piece] = []
        first: dict[TaskName, dict[SystemStreamPartition, int]] = {}
        processed: dict[TaskName, dict[SystemStreamPartition, int]] = {}
        for records, runs, _ in found:
            row = 0
            for run in runs:
                ssp = run.place
                self._next[ssp] = max(self._next[ssp], run.last + 1)
                for task_name, start in self._tasks[ssp]:
                    if run.last < start:
                        continue
                    piece = Piece(task_name, ssp, records, row, run.rows, run.size_bytes)
                    if run.first < start:
                        piece = piece.since(start)
                    first.setdefault(task_name, {})[ssp] = piece.first
                    processed.setdefault(task_name, {})[ssp] = run.last
                    if self._stored.shared.get(ssp, task_name) == task_name:
                        pieces.append(piece)
                row += run.rows
        if not pieces:
            return None
        pieces.sort(key=lambda piece: (piece.task, piece.ssp))
        size_bytes = sum(piece.size_bytes for piece in pieces)
        return MicroBatch(table_of(pieces), size_bytes, first, processed)


def _first_row(
    readers: Mapping[SystemStreamPartition, Sequence[tuple[TaskName, int]]],
    ssp: SystemStreamPartition,
) -> tuple[TaskName, SystemStreamPartition]:
    """Return what a batch's rows are sorted by, for the first of the partition's tasks."""
    return readers[ssp][0][0], ssp


_LOOK_S = 1.0
_QUIET_S = 10.0
"""By default, transactions of a job last some seconds at most."""
_AGAIN_S = 60.0


@dataclass
class _Still:
    """A partition that stands at ``position`` since ``since_s``; its end is requested at ``due_s``.

    ``is_held``: whether an open transaction held it up at the last request.
    """

    position: int
    since_s: float
    due_s: float
    is_held: bool = False


class OpenEnds:
    """Finds partitions that stand behind an open transaction. Not thread-safe.

    ``stable_end``: requests the last stable offset of a partition; None: no answer.
    """

    def __init__(
        self, clock: Callable[[], float], stable_end: Callable[[SystemStreamPartition], int | None]
    ) -> None:
        self._clock = clock
        self._stable_end = stable_end
        self._still: dict[SystemStreamPartition, _Still] = {}
        self._looked_s = clock()

    def held(self) -> dict[SystemStreamPartition, float]:
        """Return {partition behind an open transaction: the seconds that it has stood}."""
        now_s = self._clock()
        return {ssp: now_s - s.since_s for ssp, s in self._still.items() if s.is_held}

    def reports(
        self, places: Callable[[], Mapping[SystemStreamPartition, tuple[int, int]]]
    ) -> Iterator[str]:
        """Yield a line for each partition behind an open transaction, once a minute.

        Shapes: ``places`` {partition that is read now: (next offset, high watermark)}; called at
        most once a second.
        """
        now_s = self._clock()
        if now_s - self._looked_s < _LOOK_S:
            return
        self._looked_s = now_s
        for ssp, (position, high) in places().items():
            still = self._still.get(ssp)
            if high <= position:
                self._still.pop(ssp, None)
            elif still is None or still.position != position:
                self._still[ssp] = _Still(position, now_s, now_s + _QUIET_S)
            elif now_s >= still.due_s:
                still.due_s = now_s + _AGAIN_S
                stable = self._stable_end(ssp)
                # If it is stable, only markers are left, which are no records.
                still.is_held = stable is not None and stable < high
                if still.is_held:
                    yield (
                        f"input {ssp.system_stream} partition {ssp.partition} has stood at offset "
                        f"{position} for {now_s - still.since_s:.0f} s: a transaction is open "
                        f"there (last stable offset {stable}, high watermark {high}), and what "
                        "follows is read once its producer ends it, or Kafka does by its "
                        "transaction.timeout.ms"
                    )
