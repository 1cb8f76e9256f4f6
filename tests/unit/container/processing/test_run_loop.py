"""RunLoop on a clock of its own: when transactions, commits and windows come, and what ends it."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest
from run_loop_case import A, B, Ends, Foreign, LoopCase, Plain

from homeport.config.errors import ConfigError, FencedError
from homeport.container.host.stop_flag import StopFlag
from homeport.container.processing import run_loop
from homeport.container.processing.concurrent_calls import ThreadCalls


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> LoopCase:
    """A container before its first poll."""
    return LoopCase(monkeypatch)


def test_an_idle_container_soon_sees_that_it_is_to_stop(case: LoopCase) -> None:
    """No poll waits for longer than half a second, nor does it poll without a pause."""
    assert not case.run({}, 10)
    assert min(case.source.patience) > 0
    assert max(case.source.patience) <= 0.5
    assert (case.notes, case.history) == ([], [])


def test_input_outputs_and_changes_together_end_a_transaction(case: LoopCase) -> None:
    """The bytes of all three count; what the transaction before had does not."""

    def writes() -> None:
        case.outputs.send("out", b"x" * 400)
        case.storage.size_bytes += 400

    case.on_batch = writes
    case.max_bytes = 1200 * 2
    case.run({1: 10, 2: 10, 3: 10, 4: 10}, 5)
    assert case.times("transaction-committed") == [1000, 3000]


def test_the_history_has_the_first_record_once(case: LoopCase) -> None:
    """The history has it with the last offsets of its batch, and no batch after that."""
    case.run({1: 5, 2: 5, 3: 5}, 5)
    found = [(at, story) for at, event, story in case.history if event == "first-record"]
    assert found == [(1000, {"offsets": {A: {"kafka.in.0": 4}}})]


def test_a_row_of_a_task_elsewhere_is_the_pipeline_s_fault(case: LoopCase) -> None:
    """The error names the key, the task and the remedy."""
    case.pipeline = Foreign()
    with pytest.raises(ConfigError, match=r"task\.pipeline\.class.*'elsewhere'.*keep the column"):
        case.run({1: 1}, 5)
    assert case.times("transaction-committed") == []


def test_a_commit_that_a_task_asks_for_comes_at_once_and_once(case: LoopCase) -> None:
    """The open transaction ends with it; without a request neither happens so early."""

    def asks() -> None:
        case.requests.commit = case.clock.now == 3

    case.on_batch = asks
    case.run({1: 1, 2: 1, 3: 1, 4: 1}, 6)
    assert case.times("transaction-committed") == [1000, 3000]
    found = [(at, story) for at, event, story in case.history if event == "commit"]
    assert found == [(3000, {"stores": 2})]


def test_windows_come_at_a_fixed_rate(case: LoopCase) -> None:
    """Every task has its window each time, the first after one whole period."""
    case.window_ms = 2000
    case.run({}, 7)
    held = [(at, f"window {task}") for at in (2000, 4000, 6000) for task in (A, B)]
    assert case.notes == held


def test_the_loop_takes_the_tuning_of_its_turn(case: LoopCase) -> None:
    """Transactions, flushes and windows keep to new values from the next turn on."""

    def retuned() -> None:
        case.commit_ms, case.max_ms, case.window_ms = 1500, 500, 2000

    case.on_batch = retuned
    case.run({1: 1, 2: 1, 4: 1}, 8)
    # The first batch ends its transaction; the next two wait for 500 ms of age.
    assert case.times("transaction-committed") == [1000, 2500, 4500]
    flushes = case.times("commit")
    assert flushes
    assert all(b - a < 2000 for a, b in itertools.pairwise([0, *flushes]))
    assert [at for at, what in case.notes if what == f"window {A}"] == [3000, 5000, 7000]


def test_windows_that_were_missed_are_not_made_up_for(case: LoopCase) -> None:
    """After a batch that takes several periods one window comes, and the next in its turn."""

    def takes_long() -> None:
        case.clock.now = 7.5

    case.window_ms = 2000
    case.on_batch = takes_long
    case.run({1: 1}, 11)
    assert [at for at, what in case.notes if what == f"window {A}"] == [7500, 8000, 10_000]


def test_output_of_a_window_is_committed_without_any_input(case: LoopCase) -> None:
    """It opens a transaction; a window that sends nothing opens none."""

    def sends() -> None:
        if case.clock.now < 1.5:
            case.outputs.send("out", b"1")

    case.window_ms, case.max_ms = 1000, 250
    case.on_window = sends
    case.run({}, 4)
    assert case.times("transaction-committed") == [1250]
    assert [send.topic for send in case.producer.sent] == ["out", "out"]


def test_outputs_of_a_window_leave_at_once_where_they_may(case: LoopCase) -> None:
    """Where they are no part of the transaction, they do not wait for its end."""
    case.plain = Plain(case)
    case.window_ms, case.max_ms = 1000, 500
    case.on_window = lambda: case.outputs.send("out", b"1")
    case.run({}, 1.75)
    assert [at for at, what in case.notes if what == "sent to out"] == [1000, 1000]
    assert case.times("transaction-committed") == [1500]


def test_a_container_finishes_when_every_task_has_voted(case: LoopCase) -> None:
    """Each task hears of the end, and what the tasks send then is committed."""
    case.on_batch = lambda: case.requests.votes.update({A, B})
    case.on_end = lambda: case.outputs.send("out", b"last")
    assert case.run({1: 1}, 5)
    assert case.notes == [(1000, f"end of {A}"), (1000, f"end of {B}")]
    assert case.times("transaction-committed") == [1000]
    assert [send.value for send in case.producer.sent] == [b"last", b"last"]


def test_a_stop_at_the_end_of_the_stream_holds_for_the_other_tasks(case: LoopCase) -> None:
    """No further task is called, and nothing is committed: the container has not finished."""
    case.on_batch = lambda: case.requests.votes.update({A, B})
    case.on_end = case.stop.set
    assert not case.run({1: 1}, 5)
    assert case.notes == [(1000, f"end of {A}")]
    assert case.times("transaction-committed") == []


def test_calls_beside_others_are_made_before_their_batch_counts_as_read(case: LoopCase) -> None:
    """What they send is in the transaction of their records, and none is left for later."""
    calls = ThreadCalls(2, case.stop.check)

    def hands_over() -> None:
        value = b"%d" % case.seen
        for _ in range(2):
            calls.add(None, lambda: case.outputs.send("out", value))

    case.calls, case.on_batch, case.max_bytes = calls, hands_over, 1
    sent: list[int] = []
    case.on_commit = lambda: sent.append(len(case.producer.sent))
    case.run({1: 1, 2: 1}, 5)
    calls.close()
    assert [send.value for send in case.producer.sent] == [b"1", b"1", b"2", b"2"]
    assert sent == [2, 4]


def test_batches_grow_while_they_are_full_and_shrink_where_they_take_too_long(
    case: LoopCase,
) -> None:
    """Towards the time that a batch should take; 1000 rows are the most."""

    def takes() -> None:
        case.clock.now += 2.0 if case.seen == 1500 else 0.01

    case.on_batch = takes
    case.run({1: 100, 2: 400, 3: 1000, 6: 250}, 8)
    wanted = [size for size, _ in itertools.groupby(case.source.wanted)]
    assert wanted == [100, 400, 1000, 250, 1000]


def test_the_log_says_every_few_seconds_how_much_was_read(
    case: LoopCase, caplog: pytest.LogCaptureFixture
) -> None:
    """Each line counts what was read since the line before, with the rate and what still waits."""
    caplog.set_level(logging.INFO, run_loop.__name__)
    case.run(dict.fromkeys(range(1, 13), 10), 13)
    found = [record.message for record in caplog.records if "lag" in record.message]
    assert found == ["50 records in 5.0 s (10/s), lag 7"] * 2


Arrivals = dict[float, int]


@pytest.mark.parametrize(
    ("settings", "batch_s", "arrivals", "end_s", "ends"),
    [
        # Readers have waited for a whole recovery; the next transaction ends by its age.
        ({"max_ms": 10_000}, 0, {1: 1, 2: 1, 3: 1}, 20, [1000, 12_000]),
        # A poll waits no longer than the open transaction may live.
        ({"max_ms": 250}, 0, {1: 1, 2: 1}, 5, [1000, 2250]),
        ({"idle_ms": None}, 0, {1: 1, 2: 1}, 60, [1000]),
        # Each record of a slow input is committed when it comes; a commit takes 10 ms here.
        ({"idle_ms": 10, "commit_s": 0.01}, 0, {1: 1, 2: 1, 3: 1}, 5, [1010, 2010, 3010]),
        # Offsets may end in markers of transactions, which are no records.
        (
            {"idle_ms": 10, "commit_s": 0.01, "knows_end": False},
            *(0, {1: 1, 2: 1, 3: 1}, 5, [1010, 2020, 3020]),
        ),
        # A backlog is no idle input: it ends when the backlog is read.
        ({"idle_ms": 10}, 0.1, {1: 1, **{2 + n / 1000: 1 for n in range(9)}}, 5, [1100, 2900]),
        # Neither for a commit that was slow nor for the distance.
        (
            {"idle_ms": 60_000, "max_ms": 500, "commit_s": 0.25},
            *(0, {1: 1, 2: 1, 2.1: 1, 4: 1}, 6, [1250, 2750, 4750]),
        ),
        # There is nothing else to do then, even with records that wait for the next batch.
        ({"idle_ms": 10, "linger_ms": 100}, 0.1, {1: 1, 2: 1, 2.01: 1}, 3, [1100, 2100, 2300]),
    ],
    ids=[
        *("the first batch is not held back", "on time though nothing more arrives"),
        *("none early without the key", "with its batch where the input has no more"),
        *("after a short silence where no end is known", "input that waits is taken before"),
        *("never later than its time", "while a batch fills"),
    ],
)
def test_a_transaction_ends_in_its_time(
    case: LoopCase,
    settings: dict[str, Any],
    batch_s: float,
    arrivals: Arrivals,
    end_s: float,
    ends: list[int],
) -> None:
    """The history has each end after the commit."""
    for name, value in settings.items():
        setattr(case, name, value)
    case.on_batch = case.takes(batch_s)
    case.run(arrivals, end_s)
    assert case.times("transaction-committed") == ends


def test_a_trickle_does_not_become_a_transaction_per_record(case: LoopCase) -> None:
    """Commits take at most half of the time: each fourth of records 10 ms apart ends one."""
    case.idle_ms, case.commit_s = 10, 0.02
    case.run({1 + n / 100: 1 for n in range(100)}, 3)
    ends = case.times("transaction-committed")
    assert 20 <= len(ends) <= 28
    assert min(b - a for a, b in itertools.pairwise(ends)) >= 40


def test_transactions_that_end_early_keep_the_distance_that_the_key_says(case: LoopCase) -> None:
    """However little a commit costs; a record comes each 10 ms, and the next one may end it."""
    case.idle_ms = 300
    case.run({1 + n / 100: 1 for n in range(100)}, 3)
    ends = case.times("transaction-committed")
    assert len(ends) == 5
    assert all(300 <= b - a <= 310 for a, b in itertools.pairwise(ends))


def test_small_batches_fill_for_twice_as_long_as_the_one_before_took(case: LoopCase) -> None:
    """They take a third of the time; what came meanwhile is in the next one."""
    began = []

    def takes() -> None:
        began.append(case.clock.ms())
        case.clock.now += 0.04

    case.linger_ms, case.on_batch = 100, takes
    case.run({1: 1, 1.01: 1, 2: 1}, 3)
    assert began == [1000, 1120, 2000]


def test_a_stop_and_a_window_do_not_wait_for_a_batch_to_fill(case: LoopCase) -> None:
    """The loop looks at both while a batch fills."""
    case.linger_ms, case.on_batch, case.window_ms = 60_000, case.takes(5), 6500
    case.run({1: 1, 6.1: 1}, 20)
    assert next(at for at, what in case.notes if what == f"window {A}") == 6500
    case.stop = StopFlag()
    stop = case.stop
    case.notes.clear()
    case.clock.now = 0.0
    case.on_window = stop.set
    assert not case.run({1: 1, 6.1: 1}, 20)
    assert case.clock.ms() == 6500


MUCH = 1000
"""So many records are worth a batch while a transaction is on its way."""
BACKLOG = {1 + n / 1_000_000: 1 for n in range(5)}


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> LoopCase:
    """A transaction per batch, which takes half a second to be sent."""
    found = LoopCase(monkeypatch, overlaps=True, max_bytes=1, lag=MUCH)
    found.sending_s = lambda: 0.5
    found.on_batch = lambda: found.note("batch")
    return found


def test_the_tasks_work_on_the_next_transaction_while_one_is_sent(beside: LoopCase) -> None:
    """But while the first one is: its readers have waited for a whole recovery."""
    beside.on_batch = beside.takes(1.0)
    beside.run(BACKLOG, 9)
    assert beside.batches() == [2000, 3500, 4500, 5500, 6500]
    assert beside.times("transaction-committed") == [2500, 4000, 5000, 6000, 7000]


def test_a_transaction_waits_for_the_one_before(beside: LoopCase) -> None:
    """One alone is on its way: the tasks are at most one transaction ahead of Kafka."""
    beside.on_batch = beside.takes(0.1)
    beside.run(BACKLOG, 9)
    assert beside.times("transaction-committed") == [1600, 2200, 2700, 3200, 3700]
    assert beside.sides["sending"].most == 1


def test_a_transaction_that_fails_ends_the_loop(beside: LoopCase) -> None:
    """Of the one on top of it nothing is sent."""

    def fenced() -> None:
        if beside.clock.now > 3:
            raise FencedError("fenced by a newer incarnation")

    beside.on_batch, beside.on_commit = beside.takes(0.4), fenced
    with pytest.raises(FencedError):
        beside.run(BACKLOG, 9)
    assert beside.times("transaction-committed") == [1900, 2800]
    assert beside.times("transaction-ending") == [1900, 2800, 3300]
    assert beside.seen == 4


def test_a_stop_lets_what_is_on_its_way_arrive(beside: LoopCase) -> None:
    """It may be committed, and then the stores of this host are to have it; the rest is dropped."""
    beside.sending_s = lambda: 3.0
    beside.on_batch = lambda: beside.outputs.send("out", b"%d" % beside.seen)
    assert not beside.run({1: 1, 5: 1, 5.5: 1}, 6)
    assert beside.times("transaction-committed") == [4000, 8000]
    assert [send.value for send in beside.producer.sent] == [b"1", b"2"]


def test_a_failed_task_lets_what_is_on_its_way_arrive(beside: LoopCase) -> None:
    """What was committed before a poisonous record is not worked on again and again."""

    def poisoned() -> None:
        if beside.seen == 3:
            raise ValueError("poison found")

    beside.on_batch = poisoned
    with pytest.raises(ValueError, match="poison"):
        beside.run(BACKLOG, 9)
    assert beside.times("transaction-committed") == [1500, 2000]


def test_a_commit_that_a_task_asks_for_waits_until_all_is_in_the_stores(beside: LoopCase) -> None:
    """The flush comes after the transaction, not beside it."""

    def asks() -> None:
        beside.requests.commit = beside.seen == 2

    beside.on_batch, beside.max_bytes = asks, 1 << 30
    beside.run({1: 1, 3: 1}, 6)
    assert beside.times("transaction-committed") == [1500, 3500]
    assert beside.times("commit") == [3500]


def test_a_container_that_has_finished_has_committed_all(beside: LoopCase) -> None:
    """The last transaction is waited for."""
    beside.on_batch = lambda: beside.requests.votes.update({A, B} if beside.seen == 2 else ())
    assert beside.run({1: 1, 3: 1}, 9)
    assert beside.times("transaction-committed") == [1500, 3500]


@pytest.mark.parametrize("is_drained", [False, True])
def test_a_container_whose_last_transaction_fails_has_not_finished(
    beside: LoopCase, *, is_drained: bool
) -> None:
    """YARN would take it for finished, and what its tasks did last would be in no topic."""

    def fenced() -> None:
        if beside.seen == 2:
            raise FencedError("fenced by a newer incarnation")

    beside.on_commit = fenced
    if is_drained:
        beside.drain = Ends(2, beside.clock)
    else:
        beside.on_batch = lambda: beside.requests.votes.update({A, B} if beside.seen == 2 else ())
    with pytest.raises(FencedError):
        beside.run({1: 1, 3: 1}, 9)
    assert beside.times("transaction-committed") == [1500]


@pytest.mark.parametrize(
    ("lag", "batches"),
    [
        # What few records do could leave no sooner; a batch for each would be little else.
        (MUCH - 901, [1000, 3000, 3500, 3500]),
        # Nothing ends early meanwhile: what came is in the next transaction, at once after.
        (MUCH, [1000, 3000, 3100, 3200]),
    ],
    ids=["few", "many"],
)
def test_many_records_are_taken_while_a_transaction_is_on_its_way_and_few_wait(
    beside: LoopCase, lag: int, batches: list[int]
) -> None:
    """Both are in the next transaction."""
    beside.idle_ms, beside.max_bytes, beside.lag = 10, 1 << 30, lag
    beside.run({1: 1, 3: 1, 3.1: 1, 3.2: 1}, 6)
    assert beside.batches() == batches
    first, second, third = beside.times("transaction-committed")
    assert (first, second) == (1500, 3500)
    assert 4000 <= third <= 4530
