"""Prefetch: micro-batches on their way to the tasks, through the pipeline beside them."""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa

from homeport.container.adjunct.frames import NO_FRAMES
from homeport.container.host.executors import Executor, SameThread
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.processing.adjunct_feed import NOTHING, AdjunctFeed, Brought
from homeport.container.processing.loop_dependencies import Pipeline
from homeport.container.processing.typed_input import Refused, TypedInput
from homeport.container.spark.inputs import Rows, SplitRows

_MOST = 3
"""One that is done and waits for the tasks, one in the pipeline, one behind it."""
_MOST_BYTES = 32 * 1024 * 1024
"""With so many bytes of input on their way, no further batch is taken ahead."""


@dataclass(frozen=True, slots=True)
class Prefetched:
    """A micro-batch, and its rows as the pipeline made them; its input does not count as read yet.

    ``refused``: its records that are not of the schema, and ``brought``, its records for adjunct
    stores, are not among the rows.
    Units: ``taken_s`` when it was taken from the input; ``pipeline_s`` how long the pipeline took,
    ``ended_s`` when that ended; ``fetch_s`` how long its fetch took.
    """

    batch: MicroBatch
    rows: pa.Table
    taken_s: float
    pipeline_s: float
    refused: Refused = ()
    brought: Brought = NOTHING
    ended_s: float = 0.0
    fetch_s: float = 0.0


class Prefetch:
    """Batches leave in the order in which they came. Owned by one thread.

    ``adjuncts`` first takes out the rows of adjunct streams, then ``typed`` makes columns of the
    values. ``beside`` runs the pipeline; it works ahead only in a thread of its own.
    """

    def __init__(
        self,
        pipeline: Pipeline | None,
        beside: Executor,
        clock: Callable[[], float] = time.monotonic,
        typed: TypedInput | None = None,
        adjuncts: AdjunctFeed | None = None,
    ) -> None:
        self._adjuncts = adjuncts
        self._pipeline = pipeline
        self._beside = beside if pipeline is not None else SameThread()
        self._clock = clock
        self._typed = typed
        self._most = 0 if isinstance(self._beside, SameThread) else _MOST
        self._is_closed = False
        self._batches: deque[tuple[int, Future[Prefetched]]] = deque()

    @property
    def is_empty(self) -> bool:
        """Return whether no batch is on its way."""
        return not self._batches

    def works_ahead(self) -> bool:
        """Return whether one more batch may be on its way while the tasks work."""
        size_bytes = sum(size for size, _ in self._batches)
        return len(self._batches) < self._most and size_bytes < _MOST_BYTES

    def add(self, batch: MicroBatch, fetch_s: float = 0.0) -> None:
        """Give the batch to the pipeline; ``fetch_s``: how long its fetch took.

        Raises:
            HomeportError: a record of it cannot be kept in its adjunct store, or the store cannot
                be a frame of the pipeline.
        """
        taken_s = self._clock()
        left: pa.Table = batch.table
        brought = NOTHING
        if self._adjuncts is not None:
            left, brought = self._adjuncts.split(batch)
        is_all_brought = left.num_rows == 0 < batch.table.num_rows
        stores = NO_FRAMES
        if self._adjuncts is not None and not is_all_brought:
            # The pipeline works beside this thread, which alone reads stores.
            stores = self._adjuncts.frames()

        def prefetched() -> Prefetched:
            began_s = self._clock()
            rows: Rows = left
            refused: Refused = ()
            if self._typed is not None and not is_all_brought:
                rows, refused = self._typed.of(rows)
            if self._pipeline is None:
                assert not isinstance(rows, SplitRows)  # noqa: S101 - it is for frames alone
                return Prefetched(batch, rows, taken_s, 0.0, refused, brought, fetch_s=fetch_s)
            if self._is_closed:
                # Another incarnation may own the pipeline by now.
                raise StopRequestedError("no batch enters the pipeline any more")
            # If all records were refused, or went to stores, there is no row to work on.
            is_idle = not rows.num_rows and (refused or is_all_brought)
            made = batch.table.slice(0, 0) if is_idle else self._pipeline.run(rows, stores)
            ended_s = self._clock()
            took_s = ended_s - began_s
            return Prefetched(batch, made, taken_s, took_s, refused, brought, ended_s, fetch_s)

        self._batches.append((batch.size_bytes, self._beside.submit(prefetched)))

    def take(self, timeout_s: float) -> Prefetched | None:
        """Return the oldest batch once it is done; None after ``timeout_s``, or without a batch.

        Raises whatever the pipeline raised over it.
        """
        if not self._batches:
            return None
        _, call = self._batches[0]
        if not call.done():
            self._beside.wait(call, timeout_s)
        if not call.done():
            return None
        self._batches.popleft()
        return call.result()

    def close(self) -> None:
        """Drop all batches on their way; no further batch enters the pipeline."""
        self._is_closed = True
        self._batches.clear()
        self._beside.close()

    def is_over(self, limit_s: float) -> bool:
        """Wait ``limit_s`` after ``close`` for an idle pipeline; return whether it is idle."""
        return self._beside.is_over(limit_s)
