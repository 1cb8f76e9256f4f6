"""RunLoop on a clock of its own, whose transactions are sent while the tasks work on."""

from __future__ import annotations

import pytest
from run_loop_case import A, B, Ends, LoopCase

from homeport.config.errors import FencedError
from homeport.container.kafka.input_ends import Drain

MUCH = 1000
"""So many records are worth a batch while a transaction is on its way."""
BACKLOG = {1 + n / 1_000_000: 1 for n in range(5)}


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> LoopCase:
    """A transaction per batch, which takes half a second to be sent."""
    found = LoopCase(monkeypatch, overlaps=True, max_bytes=1, lag=MUCH)
    found.sending_s = lambda: 0.5
    found.on_batch = lambda: found.note("batch")
    return found


def test_the_tasks_work_on_the_next_transaction_while_one_is_sent(case: LoopCase) -> None:
    """But while the first one is: its readers have waited for a whole recovery."""
    case.on_batch = case.takes(1.0)
    case.run(BACKLOG, 9)
    assert case.batches() == [2000, 3500, 4500, 5500, 6500]
    assert case.times("transaction-committed") == [2500, 4000, 5000, 6000, 7000]


def test_a_transaction_waits_for_the_one_before(case: LoopCase) -> None:
    """One alone is on its way: the tasks are at most one transaction ahead of Kafka."""
    case.on_batch = case.takes(0.1)
    case.run(BACKLOG, 9)
    assert case.times("transaction-committed") == [1600, 2200, 2700, 3200, 3700]
    assert case.sides["sending"].most == 1


def test_a_transaction_that_fails_ends_the_loop(case: LoopCase) -> None:
    """Of the one on top of it nothing is sent."""

    def fenced() -> None:
        if case.clock.now > 3:
            raise FencedError("fenced by a newer incarnation")

    case.on_batch, case.on_commit = case.takes(0.4), fenced
    with pytest.raises(FencedError):
        case.run(BACKLOG, 9)
    assert case.times("transaction-committed") == [1900, 2800]
    assert case.times("transaction-ending") == [1900, 2800, 3300]
    assert case.seen == 4


def test_a_stop_lets_what_is_on_its_way_arrive(case: LoopCase) -> None:
    """It may be committed, and then the stores of this host are to have it; the rest is dropped."""
    case.sending_s = lambda: 3.0
    case.on_batch = lambda: case.outputs.send("out", b"%d" % case.seen)
    assert not case.run({1: 1, 5: 1, 5.5: 1}, 6)
    assert case.times("transaction-committed") == [4000, 8000]
    assert [send.value for send in case.producer.sent] == [b"1", b"2"]


def test_a_failed_task_lets_what_is_on_its_way_arrive(case: LoopCase) -> None:
    """What was committed before a poisonous record is not worked on again and again."""

    def poisoned() -> None:
        if case.seen == 3:
            raise ValueError("poison found")

    case.on_batch = poisoned
    with pytest.raises(ValueError, match="poison"):
        case.run(BACKLOG, 9)
    assert case.times("transaction-committed") == [1500, 2000]


def test_a_commit_that_a_task_asks_for_waits_until_all_is_in_the_stores(case: LoopCase) -> None:
    """The flush comes after the transaction, not beside it."""

    def asks() -> None:
        case.requests.commit = case.seen == 2

    case.on_batch, case.max_bytes = asks, 1 << 30
    case.run({1: 1, 3: 1}, 6)
    assert case.times("transaction-committed") == [1500, 3500]
    assert case.times("commit") == [3500]


def test_a_container_that_has_finished_has_committed_all(case: LoopCase) -> None:
    """The last transaction is waited for."""
    case.on_batch = lambda: case.requests.votes.update({A, B} if case.seen == 2 else ())
    assert case.run({1: 1, 3: 1}, 9)
    assert case.times("transaction-committed") == [1500, 3500]


@pytest.mark.parametrize("is_drained", [False, True])
def test_a_container_whose_last_transaction_fails_has_not_finished(
    case: LoopCase, *, is_drained: bool
) -> None:
    """YARN would take it for finished, and what its tasks did last would be in no topic."""

    def fenced() -> None:
        if case.seen == 2:
            raise FencedError("fenced by a newer incarnation")

    case.on_commit = fenced
    if is_drained:
        case.drain = Drain(Ends(2, case.clock))
    else:
        case.on_batch = lambda: case.requests.votes.update({A, B} if case.seen == 2 else ())
    with pytest.raises(FencedError):
        case.run({1: 1, 3: 1}, 9)
    assert case.times("transaction-committed") == [1500]


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
    case: LoopCase, lag: int, batches: list[int]
) -> None:
    """Both are in the next transaction."""
    case.idle_ms, case.max_bytes, case.lag = 10, 1 << 30, lag
    case.run({1: 1, 3: 1, 3.1: 1, 3.2: 1}, 6)
    assert case.batches() == batches
    first, second, third = case.times("transaction-committed")
    assert (first, second) == (1500, 3500)
    assert 4000 <= third <= 4530
