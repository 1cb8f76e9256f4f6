"""AdjunctFeed: the records of adjunct streams go to their stores, and all others to the tasks.

A micro-batch is split right after the poll, before a pipeline sees it. Its records for the stores
are written when the tasks get the batch. So the stores stand still within a batch, and tasks read
the same however far the pipeline is ahead. A pipeline gets the rows of its stores with the batch.
"""

import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from homeport.config.declarations import all_keys as keys
from homeport.container.adjunct.frames import NO_FRAMES, StoreFrames
from homeport.container.adjunct.manager import TableManager
from homeport.container.adjunct.version_text import PARTS_KEY
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.processing.records import BadRecords, Row, rows_by_task
from homeport.container.spark.faults import Named
from homeport.container.storage.adjunct.adjunct_frames import AdjunctFrames
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, Layers, write
from homeport.container.storage.adjunct.filled_store import FilledStore
from homeport.container.storage.adjunct.stream_ends import StreamEnds
from homeport.container.storage.task_store import Reached
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


@dataclass(frozen=True, slots=True)
class Brought:
    """The writes of one micro-batch to the stores. ``refused``: records that cannot be stored."""

    layers: Layers = ()
    refused: tuple[tuple[Row, str], ...] = ()


NOTHING = Brought()
_LOG = logging.getLogger(__name__)
_POLL_S = 30.0
"""The longest interval between polls of the streams' ends."""
_INPUT = Named(keys.TASK_INPUTS.name, "")  # its rows have a task, as none is a pipeline's yet


@dataclass
class RefusedRecords:
    """The refused records of the batch that is split; they are handled at the batch's turn."""

    found: list[tuple[Row, str]] = field(default_factory=list)

    def met(self, row: Row, reason: str) -> None:
        """Add a record to them."""
        self.found.append((row, reason))

    def take(self) -> tuple[tuple[Row, str], ...]:
        """Return all of them, and keep none."""
        found, self.found = self.found, []
        return tuple(found)


class AdjunctFeed:
    """One per container, in the loop's thread.

    ``partitions``: the partitions of adjunct streams. ``storage``: its ``recover`` has returned.
    ``refused``: has the records that the managers refuse; ``bad`` handles them. ``frames``: the
    rows that a pipeline gets. ``ends``: requests the ends of compacted streams.
    """

    def __init__(
        self,
        storage: AdjunctStorage,
        managers: Mapping[TaskName, TableManager],
        refused: RefusedRecords,
        bad: BadRecords,
        frames: AdjunctFrames | None = None,
        ends: StreamEnds | None = None,
    ) -> None:
        self._ends = ends
        self._poll_s = storage.poll_interval_s(_POLL_S)
        self._due_s = -math.inf
        self._storage = storage
        self._managers = managers
        self._refused = refused
        self._bad = bad
        self._frames = frames
        self._engines: dict[str, StorageEngine] = {}
        stores = storage.plan.stores
        self.partitions: frozenset[SystemStreamPartition] = frozenset(
            partition for store in stores for partition in store.partitions
        )

    def split(self, batch: MicroBatch) -> tuple[pa.Table, Brought]:
        """Return the rows of ``batch`` for the tasks, in their order, and the writes to stores.

        Raises:
            HomeportError: a record cannot be stored, and may not be dropped.
        """
        if not any(self.partitions.intersection(own) for own in batch.processed.values()):
            return batch.table, NOTHING
        left = [
            self._managers[TaskName(task)].process_table(rows)
            for task, rows in rows_by_task(batch.table, _INPUT)
        ]
        rows = pa.concat_tables(left).combine_chunks()
        brought = Brought(self._storage.sealed(), self._refused.take())
        if self._frames is not None:
            self._frames.taken(brought.layers)
        return rows, brought

    def frames(self) -> StoreFrames:
        """Return {store: its rows} for the pipeline, for the batch that was split last.

        Raises:
            FrameError: the pipeline cannot have them.
        """
        return NO_FRAMES if self._frames is None else self._frames.frames()

    def show(
        self,
        brought: Brought,
        on_step_done: Reached,
        on_step_begin: Reached,
        *,
        waits: bool = False,
    ) -> None:
        """Write the batch's records to the stores; the open transaction gets its dead letters.

        Tasks see a version that the batch completes once it is on the disk. With ``waits``, and
        where a pipeline takes stores, this waits for that.

        Raises:
            UndecodableError: a record was refused, and may not be dropped.
        """
        for row, reason in brought.refused:
            self._bad.met(row, reason)
        write(brought.layers, on_step_done, on_step_begin)
        # A pipeline works ahead: it needs the first batch that reads a version.
        self._storage.switch_versions(
            on_step_done, on_step_begin, waits=waits or self._frames is not None
        )
        if self._frames is not None:
            self._frames.written(brought.layers)

    def show_ready(self, on_step_done: Reached, on_step_begin: Reached) -> None:
        """Switch to the versions that have become ready, though no batch has come."""
        self._storage.switch_versions(on_step_done, on_step_begin)

    def poll_heads(
        self, now_s: float, following: Mapping[SystemStreamPartition, int] | None
    ) -> None:
        """Poll, where it is due, whether the stores are at the heads of their streams.

        ``following``: {partition: next offset}; None: batches are on their way.
        """
        if self._ends is None or now_s < self._due_s:
            return
        self._due_s = now_s + self._poll_s
        self._storage.read(following)
        for partition, fault in self._ends.faults():
            # The input and the watch of topics judge that.
            _LOG.debug("%s: %s", partition, fault.story)
        self._ends.poll()

    def close(self) -> None:
        """End the polls of the streams."""
        if self._ends is not None:
            self._ends.close()

    def note_reads(self, batch: int, history: Callable[..., None]) -> None:
        """Write to the history each version that tasks read in ``batch`` for the first time.

        It is called before the batch and after it: tasks may not have read two. The engine itself
        has the facts of its version: whether each partition has ended it, and where.
        """
        for store in self._storage.bounded():
            engine = store.entries.engine
            if self._engines.get(store.name) is engine:
                continue
            self._engines[store.name] = engine
            history("version-read", batch=batch, **_read(store, engine))


def _read(store: FilledStore, engine: StorageEngine) -> dict[str, Any]:
    text = engine.get(PARTS_KEY)
    planned = store.planned
    return {
        "store": store.name,
        "version": store.facts().version,
        "bootstrap": planned.store.is_bootstrap,
        "topic_id": store.topic_id,
        "partitions": [partition.name for partition in planned.partitions],
        "parts": {} if text is None else json.loads(text),
    }
