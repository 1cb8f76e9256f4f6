"""What is known of transactions by the records of Kafka's transaction coordinators.

``test_hanging_transactions`` reads those of a real broker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from transaction_records import (
    COMPLETE_ABORT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    flexible,
    key,
    plain,
)

from homeport.container.progress.transaction_state import (
    Batch,
    Ended,
    Outcome,
    Place,
    TransactionEnds,
    transactional_id_of,
)

LOG = ("a-changelog", 3)
OUT = ("out" * 50, 200)
BOTH = frozenset({LOG, OUT})
COORDINATOR_EPOCH = 9


def _ended(name: str, outcome: Outcome, places: frozenset[Place] = BOTH) -> Ended:
    return Ended(name, outcome, places, 7, 1, COORDINATOR_EPOCH, {})


def _taken(*records: tuple[str, bytes | None]) -> TransactionEnds:
    ends = TransactionEnds()
    for name, value in records:
        ends.take(key(name), value, COORDINATOR_EPOCH)
    return ends


@pytest.mark.parametrize("value", [plain, flexible])
def test_a_transaction_has_the_end_that_was_prepared(
    value: Callable[[int, list[Place]], bytes],
) -> None:
    """In every partition of it; what comes after, complete or empty, takes nothing back."""
    ends = TransactionEnds()
    for name, status in (("one", PREPARE_COMMIT), ("two", PREPARE_ABORT)):
        ends.take(key(name), value(ONGOING, [LOG, OUT]), COORDINATOR_EPOCH)
        assert name not in {ended.transactional_id for ended in ends.in_place(LOG)}
        ends.take(key(name), value(status, [LOG, OUT]), COORDINATOR_EPOCH)
    ends.take(key("two"), value(COMPLETE_ABORT, []), COORDINATOR_EPOCH + 1)
    ends.take(key("two"), value(EMPTY, []), COORDINATOR_EPOCH + 1)
    ends.take(key("two"), None, COORDINATOR_EPOCH + 1)
    found = [replace(ended, unlike_ms={}) for ended in ends.in_place(LOG)]
    assert found == [_ended("two", Outcome.ABORTED), _ended("one", Outcome.COMMITTED)]
    assert ends.in_place(OUT) == ends.in_place(LOG)
    assert ends.places() == BOTH
    assert ends.in_place(("a-changelog", 2)) == []


def test_the_last_transaction_of_an_id_in_a_partition_counts() -> None:
    """One that is open there will end what was left open; elsewhere the one before it counts."""
    records = [("one", plain(PREPARE_COMMIT, [LOG, OUT])), ("one", plain(ONGOING, [LOG]))]
    ends = _taken(*records)
    assert ends.in_place(LOG) == []
    assert ends.in_place(OUT) == [_ended("one", Outcome.COMMITTED)]
    ends = _taken(*records, ("one", plain(PREPARE_COMMIT, [LOG])))
    assert ends.in_place(LOG) == [_ended("one", Outcome.COMMITTED, frozenset({LOG}))]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00\x02" + plain(PREPARE_ABORT, [LOG])[2:],
        plain(PREPARE_ABORT, [LOG])[:20],
        plain(PREPARE_ABORT, [LOG])[:-10],
        flexible(PREPARE_ABORT, [LOG])[:22],
        plain(PREPARE_ABORT, [LOG]).replace(b"a-ch", b"\xff\xff\xff\xff"),
    ],
)
def test_a_record_of_unknown_form_makes_the_state_of_its_id_unknown(value: bytes) -> None:
    """A later version, or a record that is cut short, may say anything, but of one id."""
    others = [("two", plain(PREPARE_COMMIT, [LOG]))]
    ends = _taken(("one", plain(PREPARE_COMMIT, [LOG])), *others, ("one", value))
    assert [ended.transactional_id for ended in ends.in_place(LOG)] == ["two"]


def test_after_a_key_of_no_known_form_nothing_is_known() -> None:
    """It may be any id's; nor without the coordinator's epoch, as which no end could be written."""
    record = plain(PREPARE_COMMIT, [LOG])
    for of, epoch in ((key("one", version=1), COORDINATOR_EPOCH), (key("one"), None)):
        ends = _taken(("one", record))
        ends.take(of, record, epoch)
        assert ends.in_place(LOG) == []


def test_a_key_is_an_id_of_the_known_form() -> None:
    """Of another version, cut short, or of another length than it says, it is none."""
    assert transactional_id_of(key("an-id")) == "an-id"
    assert transactional_id_of(key("an-id", version=1)) is None
    assert transactional_id_of(key("an-id")[:-1]) is None
    assert transactional_id_of(b"\x00") is None
    assert transactional_id_of(b"\x00\x00\x00\x01\xff") is None


def _last(*ends: tuple[int, int, int]) -> Ended:
    """The last of an id's ends; each: its status, epoch, and when it was decided."""
    records = [("one", plain(s, [LOG], (7, epoch), at_ms)) for s, epoch, at_ms in ends]
    return _taken(*records).in_place(LOG)[0]


def test_a_batch_is_of_the_transaction_of_its_producer_and_epoch() -> None:
    """An end may have raised the epoch by one, not by more."""
    ended = _last((PREPARE_ABORT, 3, 10))
    for epoch, is_its in ((1, False), (2, True), (3, True), (4, False)):
        assert ended.began_with(Batch(7, epoch, 9), LOG) == is_its
    assert not ended.began_with(Batch(8, 3, 9), LOG)


def test_a_batch_from_before_an_end_of_the_other_outcome_is_of_no_certain_transaction() -> None:
    """A producer keeps its epoch: the batch may be of the one that was committed, or of this."""
    ended = _last((PREPARE_COMMIT, 3, 10), (PREPARE_COMMIT, 3, 20), (PREPARE_ABORT, 4, 30))
    assert [ended.began_with(Batch(7, 3, at_ms), LOG) for at_ms in (9, 20, 21)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("status", [EMPTY, COMPLETE_ABORT, 6])
def test_a_record_that_decides_nothing_is_no_end(status: int) -> None:
    """Whatever partitions it names: the end that was prepared stays."""
    ends = _taken(("one", plain(PREPARE_COMMIT, [LOG])), ("one", plain(status, [LOG, OUT])))
    assert ends.in_place(LOG) == [_ended("one", Outcome.COMMITTED, frozenset({LOG}))]
    assert ends.in_place(OUT) == []
