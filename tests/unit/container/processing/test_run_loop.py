"""RunLoop on a clock of its own: when transactions, commits and windows come, and what ends it."""

from __future__ import annotations

import itertools
import logging

import pytest
from run_loop_case import A, B, Foreign, LoopCase, Plain

from homeport.config.errors import ConfigError
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
