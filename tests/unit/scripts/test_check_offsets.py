"""The outside judge of where input offsets go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.scripts.test_check_history import INPUT, TASK, History

RULE = "input offsets never go back and never skip"
LOST: dict[str, Any] = {"input": INPUT, "first": 30, "next": 50}
SET: dict[str, Any] = {"task": TASK, "input": INPUT, "first": 30, "next": 7}


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Epoch 1 was killed after offset 19; epoch 2 has gone on, up to 29; epoch 3 starts."""
    history = History(tmp_path)
    history.start(100, ("0", 1))
    history.transaction(200, ("0", 1), (0, 19))
    history.stop(400, ("0", 1))
    history.follow(500, 2)
    history.transaction(600, ("0", 2), (20, 29))
    history.follow(650, 3)
    return history


def says(history: History, name: str, at: int = 690, epoch: int = 3, **fields: Any) -> None:  # noqa: ANN401 - fields of JSON
    """The container of that epoch writes this of its input."""
    history.event(at, "container", name, ("0", epoch), **fields)


def commits(history: History, *spans: tuple[int, int], at: int = 700) -> list[str]:
    """The broken rules after transactions of epoch 3."""
    for number, span in enumerate(spans):
        history.transaction(at + 10 * number, ("0", 3), span)
    return history.broken()


def test_after_a_reset_of_the_state_the_input_is_read_again(history: History) -> None:
    """From any configured place; a second record of the same reset excuses nothing."""
    history.event(640, "driver", "state-reset", ("0", 3), submission=2)
    assert commits(history, (0, 9)) == []
    history.event(740, "driver", "state-reset", ("0", 4), submission=2)
    history.follow(750, 4)
    history.transaction(800, ("0", 4), (0, 9))
    assert history.broken() == [RULE]


@pytest.mark.parametrize(("anew", "faults"), [("kafka.in", 0), ("kafka.other", 1)])
def test_an_input_that_starts_again_is_read_from_anywhere(
    history: History, anew: str, faults: int
) -> None:
    """The partitions of that input alone."""
    history.event(640, "driver", "input-begun-anew", ("0", 3), input=anew, submission=2)
    assert commits(history, (0, 9)) == [RULE] * faults


@pytest.mark.parametrize(("task", "faults"), [(TASK, 0), ("Partition 1", 1)])
def test_an_input_that_left_begins_anywhere_on_its_return(
    history: History, task: str, faults: int
) -> None:
    """Its positions are forgotten, those of the reporting task alone."""
    says(history, "input-left", **{**SET, "task": task})
    assert commits(history, (0, 9)) == [RULE] * faults


@pytest.mark.parametrize(
    ("lost", "offsets", "faults"),
    [
        (LOST, [(50, 59)], 0),
        (LOST, [(51, 59)], 1),
        (LOST, [(40, 59)], 1),
        (LOST, [(30, 59)], 0),
        (LOST, [(30, 49), (50, 59)], 0),
        (LOST, [(30, 39), (50, 59)], 0),
        ({**LOST, "first": 31}, [(50, 59)], 1),
        ({**LOST, "input": "kafka.in.1"}, [(50, 59)], 1),
        ({**LOST, "next": None}, [(50, 59)], 1),
    ],
)
def test_input_that_kafka_has_deleted_is_no_skip(
    history: History, lost: dict[str, Any], offsets: list[tuple[int, int]], faults: int
) -> None:
    """As its container says that it was lost: from its first offset on, up to where it goes on."""
    says(history, "input-lost", **lost)
    assert commits(history, *offsets) == [RULE] * faults


@pytest.mark.parametrize(("first", "faults"), [(30, 0), (50, 0), (45, 1)])
def test_a_container_that_dies_behind_a_gap_leaves_two_places(
    history: History, first: int, faults: int
) -> None:
    """It has committed where it goes on, or not yet; a second gap begins where the first ends."""
    says(history, "input-lost", **LOST)
    history.stop(700, ("0", 3))
    history.follow(750, 4)
    history.transaction(800, ("0", 4), (first, 59))
    assert history.broken() == [RULE] * faults
    says(history, "input-lost", 790, 4, input=INPUT, first=50, next=first)
    assert history.broken() == [RULE] * (first < 50 and faults)


@pytest.mark.parametrize(
    ("event", "more", "first", "faults"),
    [
        ("input-reset", {"next": 0}, 0, 0),
        ("input-reset", {"next": 0, "first": None}, 0, 0),
        ("input-reset", {"next": 0}, 5, 1),
        ("input-reset", {"next": 0, "task": "Partition 1"}, 0, 1),
        ("input-reset", {"next": 40}, 40, 0),
        ("input-reset", {"next": 40}, 45, 1),
        ("checkpoint-set", {}, 7, 0),
        ("checkpoint-set", {}, 30, 1),
        ("checkpoint-set", {}, 9, 1),
        ("checkpoint-set", {"next": 40}, 40, 0),
        ("checkpoint-set", {"next": 40}, 45, 1),
        ("checkpoint-set", {"next": None}, 7, 1),
        ("checkpoint-set", {"task": "Partition 1"}, 7, 1),
    ],
)
def test_a_partition_begins_where_its_configuration_or_an_operator_says(
    history: History, event: str, more: dict[str, Any], first: int, faults: int
) -> None:
    """Not at its checkpoint, and there alone: what is lost beside it is lost, also later on."""
    says(history, event, **{**SET, **more})
    assert commits(history, (first, 59), (60, 69)) == [RULE] * faults
    assert commits(history, (71, 79), at=740) == [RULE]


@pytest.mark.parametrize(("first", "faults"), [(7, 0), (30, 1)])
def test_what_an_operator_has_set_stays_until_a_container_commits(
    history: History, first: int, faults: int
) -> None:
    """The first container dies before that; the next one reads the same checkpoint."""
    says(history, "checkpoint-set", **SET)
    history.stop(695, ("0", 3))
    history.follow(700, 4)
    says(history, "checkpoint-set", 710, 4, **SET)
    history.transaction(720, ("0", 4), (first, 39))
    history.stop(730, ("0", 4))
    history.follow(740, 5)
    history.transaction(750, ("0", 5), (40, 49))
    assert history.broken() == [RULE] * faults


@pytest.mark.parametrize(("first", "faults"), [(7, 0), (12, 0), (15, 1)])
def test_input_may_be_lost_behind_what_an_operator_has_set(
    history: History, first: int, faults: int
) -> None:
    """The container says both."""
    says(history, "checkpoint-set", **SET)
    says(history, "input-lost", 691, input=INPUT, first=7, next=12)
    assert commits(history, (first, 59)) == [RULE] * faults


@pytest.mark.parametrize(
    ("offsets", "word"), [((25, 39), "went back"), ((31, 39), "skipped"), ((15, 19), "went back")]
)
def test_offsets_that_do_not_go_on_are_found(
    history: History, offsets: tuple[int, int], word: str
) -> None:
    """A successor begins neither before nor beyond the record after the last committed one."""
    assert commits(history, offsets) == [RULE]
    assert word in history.said


@pytest.mark.parametrize(("stood", "faults"), [(29, 0), (28, 1)])
def test_a_partition_may_stand_while_another_of_its_task_moves(
    history: History, stood: int, faults: int
) -> None:
    """Its last committed offset is reported again; an earlier one is not where it stood."""
    says(history, "transaction-ending", offsets={TASK: {INPUT: stood, "kafka.b.0": [0, 3]}})
    says(history, "transaction-committed", 701)
    assert history.broken() == [RULE] * faults


@pytest.mark.parametrize(("first", "faults"), [(30, 0), (40, 0), (35, 1)])
def test_a_transaction_of_unknown_outcome_leaves_two_places(
    history: History, first: int, faults: int
) -> None:
    """Its successor goes on before it or after it, as Kafka knows; half of it is never there."""
    history.transaction(620, ("0", 2), (30, 39), is_known=False)
    assert commits(history, (first, 49)) == [RULE] * faults


def test_gaps_can_be_allowed(history: History) -> None:
    """Compacted topics skip offsets; going back stays a fault."""
    assert commits(history, (33, 39)) == [RULE]
    assert history.broken("--allow-gaps") == []
    history.transaction(730, ("0", 3), (39, 45))
    assert history.broken("--allow-gaps") == [RULE]


@pytest.mark.parametrize(("first", "faults"), [(30, 0), (31, 1)])
def test_lines_of_an_earlier_release_are_read(history: History, first: int, faults: int) -> None:
    """A first and a last offset are fields of their own there, in both lines of a transaction."""
    fields: dict[str, Any] = {"first": {TASK: {INPUT: first}}, "offsets": {TASK: {INPUT: 39}}}
    says(history, "transaction-ending", **fields)
    says(history, "transaction-committed", 701, **fields)
    assert history.broken() == [RULE] * faults


@pytest.mark.parametrize(
    ("topic", "first", "faults"),
    [
        ("__homeport_repartition_j_1_own", 12, 0),
        ("__homeport_repartition_j_1_own", 9, 1),
        ("in", 12, 1),
    ],
)
def test_the_end_of_a_transaction_is_no_record_of_a_repartition(
    history: History, topic: str, first: int, faults: int
) -> None:
    """Its job writes it in transactions alone; no record is read twice all the same."""
    for at, span in ((700, (0, 9)), (710, (first, 20))):
        history.transaction(at, ("0", 3), span, input_=f"kafka.{topic}.1")
    assert history.broken() == [RULE] * faults
