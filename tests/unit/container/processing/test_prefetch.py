"""RunLoop whose pipeline works ahead, on a clock of its own; and its stage alone."""

from __future__ import annotations

import itertools
import threading
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_loop_case import PARTITION, A, B, Ends, LoopCase, Passing

from homeport.container.api import BATCH_SCHEMA
from homeport.container.host.executors import OneThread, SameThread
from homeport.container.host.stop_flag import StopFlag
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.processing.prefetch import Prefetch
from homeport.container.processing.typed_input import TypedInput

LIMIT_S = 30.0
ROWS = 1000
"""So many rows are worth a batch of their own."""
BACKLOG = {1 + n / 1_000_000: ROWS for n in range(6)}


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> LoopCase:
    """A container with a pipeline, before its first poll."""
    return _overlapping(monkeypatch)


def _overlapping(monkeypatch: pytest.MonkeyPatch) -> LoopCase:
    found = LoopCase(monkeypatch, pipeline=Passing(), overlaps=True, counts_waiting=True)
    found.pipeline_s = lambda: 1.0
    return found


def test_the_pipeline_works_on_the_next_batch_while_the_tasks_work_on_one(case: LoopCase) -> None:
    """Six batches of a second in Spark and most of one in the tasks take seven seconds."""
    case.on_batch = case.takes(0.9)
    case.run(BACKLOG, 12)
    assert case.batches() == [2900, 3900, 4900, 5900, 6900, 7900]


def test_where_the_tasks_are_slower_the_pipeline_waits_for_them(case: LoopCase) -> None:
    """At most three batches are on their way, however long the tasks take."""
    case.on_batch = case.takes(5.0)
    case.run(BACKLOG, 40)
    assert case.batches() == [7000, 12_000, 17_000, 22_000, 27_000, 32_000]
    assert case.sides["pipeline"].most == 3


def test_large_batches_are_not_taken_ahead(case: LoopCase) -> None:
    """Beside more than 32 MiB of input nothing else is fetched: the memory has a bound."""
    case.on_batch = case.takes(0.5)
    case.row_bytes = 40_000
    case.run(BACKLOG, 14)
    assert case.sides["pipeline"].most == 1


def test_few_rows_are_no_batch_of_their_own_while_there_is_other_work(case: LoopCase) -> None:
    """They wait for the pipeline, and more come meanwhile."""
    case.on_batch = case.takes(0.5)
    case.run({1 + n / 1_000_000: 10 for n in range(3)}, 14)
    assert case.sides["pipeline"].most == 1
    assert case.batches() == [2500, 4000, 5500]


def test_a_transaction_does_not_end_early_while_a_batch_is_on_its_way(case: LoopCase) -> None:
    """The input is at its end, but its last batch is in the pipeline."""
    case.idle_ms, case.on_batch = 10, case.takes(0.1)
    case.run({1: ROWS, 1.5: ROWS, 1.6: ROWS}, 10)
    assert case.times("transaction-committed") == [2100, 4100]


def test_what_the_pipeline_raises_ends_the_loop_when_its_batch_is_due(case: LoopCase) -> None:
    """The tasks have seen the batch before; of the failed one nothing counts as read."""
    case.pipeline, case.on_batch = Passing(fails_at=2), case.takes(0.1)
    with pytest.raises(ValueError, match="the pipeline has failed"):
        case.run(BACKLOG, 20)
    assert case.seen == ROWS
    assert _committed(case) == [ROWS - 1]


def test_a_stop_does_not_wait_for_the_pipeline(case: LoopCase) -> None:
    """Spark hangs, and SIGTERM ends the container within a moment."""
    case.pipeline_s = lambda: 1000.0
    assert not case.run(BACKLOG, 4)
    assert case.clock.ms() <= 4300
    assert case.times("transaction-committed") == []


class _Decoding:
    """Replaces a ``TypedInput``: the values become columns when the test wants."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def of(self, rows: pa.Table) -> tuple[pa.Table, tuple[()]]:
        """The rows as they are."""
        self.has_begun.set()
        assert self.may_end.wait(LIMIT_S)
        return rows, ()


def test_no_batch_enters_the_pipeline_of_a_loop_that_has_ended() -> None:
    """Its Spark may serve the next incarnation, once no batch is on its way there."""
    pipeline, decoding = Passing(), _Decoding()
    ahead = Prefetch(pipeline, OneThread("test"), typed=cast("TypedInput", decoding))
    rows = pa.Table.from_pylist([{"task": "t", "offset": 7}], BATCH_SCHEMA)
    ahead.add(MicroBatch(rows, 1, {}, {}))
    assert decoding.has_begun.wait(LIMIT_S)
    ahead.close()
    assert not ahead.is_over(0.0)
    decoding.may_end.set()
    assert ahead.is_over(LIMIT_S)
    assert pipeline.batches == 0


@pytest.mark.parametrize("pipeline", [None, Passing()])
def test_a_batch_knows_how_long_its_fetch_took(pipeline: Passing | None) -> None:
    """A transaction is as old as its first fetch."""
    ahead = Prefetch(pipeline, SameThread())
    ahead.add(MicroBatch(BATCH_SCHEMA.empty_table(), 1, {}, {}), 2.5)
    prefetched = ahead.take(0)
    assert prefetched is not None
    assert prefetched.fetch_s == 2.5


def test_windows_are_held_while_the_pipeline_works(case: LoopCase) -> None:
    """They wait for the tasks alone."""
    case.window_ms, case.pipeline_s = 500, lambda: 2.25
    case.run({1: 1}, 4)
    windows = [at for at, what in case.notes if what == f"window {A}"]
    assert windows == [500, 1000, 1500, 2000, 2500, 3000, 3500, 4000]


def test_batches_on_their_way_are_not_read_after_the_last_vote(case: LoopCase) -> None:
    """What every task has voted for the end of is committed, and nothing beyond it."""
    case.on_batch = lambda: case.requests.votes.update({A, B})
    assert case.run(BACKLOG, 20)
    assert case.seen == ROWS
    assert _committed(case) == [ROWS - 1]


def test_a_commit_that_a_task_asks_for_covers_what_the_tasks_have_seen(case: LoopCase) -> None:
    """Not what is on its way."""

    def asks() -> None:
        case.requests.commit = case.seen == 2 * ROWS

    case.on_batch = asks
    case.run(BACKLOG, 4.5)
    assert _committed(case) == [ROWS - 1, 2 * ROWS - 1]
    assert case.times("commit") == [3000]


def test_a_container_is_not_drained_while_a_batch_is_on_its_way(case: LoopCase) -> None:
    """Its records are no ends of transactions: Kafka is not asked about them meanwhile."""
    drain = Ends(2 * ROWS, case.clock)
    case.drain, case.pipeline_s = drain, lambda: 3.0
    assert case.run({1: ROWS, 1.5: ROWS}, 20)
    assert [at for at in drain.looks if at > 1000] == []
    assert _committed(case) == [ROWS - 1, 2 * ROWS - 1]


def test_the_age_of_a_transaction_counts_from_its_first_batch_s_fetch(case: LoopCase) -> None:
    """But not from before the end of the one before: transactions keep their distance."""
    case.max_ms, case.on_batch = 1500, case.takes(0.1)
    case.run(BACKLOG, 12)
    ends = case.times("transaction-committed")
    assert ends[0] == 2100
    assert [b - a for a, b in itertools.pairwise(ends)] == [1500] * 4


def _committed(case: LoopCase) -> list[int]:
    """The last offset of each transaction that is committed."""
    names = [event for _, event, _ in case.history if event.startswith("transaction-")]
    ends = [story for _, event, story in case.history if event == "transaction-ending"]
    found = [end["offsets"][A][_FLAT][1] for end in ends]
    assert names == ["transaction-ending", "transaction-committed"] * len(found)
    return found


_FLAT = f"{PARTITION.system}.{PARTITION.stream}.{PARTITION.partition}"
_TIMES = st.floats(0.0, 3.0)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_however_work_interleaves_each_row_is_seen_once_and_committed_after(data: Any) -> None:  # noqa: ANN401 - hypothesis's
    """Rows are committed in the order of the input, never before the tasks have seen them."""
    arrivals = data.draw(st.dictionaries(_TIMES, st.integers(1, 2500), min_size=1, max_size=8))
    with pytest.MonkeyPatch.context() as monkeypatch:
        case = _overlapping(monkeypatch)
        case.stop = StopFlag()
        case.max_ms = data.draw(st.sampled_from([1, 400, 5000]))
        case.idle_ms = data.draw(st.sampled_from([None, 10]))
        case.linger_ms = data.draw(st.sampled_from([0, 100]))
        case.pipeline_s = lambda: data.draw(_TIMES)
        case.sending_s = lambda: data.draw(_TIMES)
        seen_at_commit: list[int] = []

        def work() -> None:
            case.clock.now += data.draw(_TIMES)

        case.on_batch = work
        case.on_commit = lambda: seen_at_commit.append(case.seen)
        case.run(arrivals, 100)
    total = sum(arrivals.values())
    assert case.seen == total
    committed = [offset + 1 for offset in _committed(case)]
    assert committed == sorted(set(committed))
    assert all(rows <= seen for rows, seen in zip(committed, seen_at_commit, strict=True))
    assert committed[-1] == total
