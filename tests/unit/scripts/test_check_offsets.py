"""The outside judge of where input offsets go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.scripts.test_check_history import INPUT, TASK, History, broken

RULE = "input offsets never go back and never skip"


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Epoch 1 was killed after offset 19; epoch 2 goes on with one transaction, up to 29."""
    history = History(tmp_path)
    history.start(100, ("0", 1))
    history.transaction(200, ("0", 1), (0, 19))
    history.stop(400, ("0", 1))
    history.start(500, ("0", 2), fences=[("0", 1)])
    history.transaction(600, ("0", 2), (20, 29))
    return history


def test_after_a_reset_of_the_state_the_input_is_read_again(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    """From any configured place; a second record of the same reset excuses nothing."""
    history.event(640, "driver", "state-reset", ("0", 3), submission=2)
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.transaction(700, ("0", 3), (0, 9))
    assert history.judge() == 0
    history.event(740, "driver", "state-reset", ("0", 4), submission=2)
    history.start(750, ("0", 4), fences=[("0", 3)])
    history.transaction(800, ("0", 4), (0, 9))
    assert history.judge() == 1
    assert broken(capsys.readouterr().out) == [RULE]


@pytest.mark.parametrize(("anew", "code"), [(INPUT, 0), ("kafka.other.0", 1)])
def test_an_input_that_starts_again_is_read_from_anywhere(
    history: History, anew: str, code: int
) -> None:
    """The partitions of that input alone."""
    stream = anew.rpartition(".")[0]
    history.event(640, "driver", "input-begun-anew", ("0", 3), input=stream, submission=2)
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.transaction(700, ("0", 3), (0, 9))
    assert history.judge() == code


LOST: dict[str, Any] = {"input": INPUT, "first": 30, "next": 50}


@pytest.mark.parametrize(
    ("lost", "offsets", "code"),
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
    history: History, lost: dict[str, Any], offsets: list[tuple[int, int]], code: int
) -> None:
    """As its container says that it was lost: from its first offset on, up to where it goes on."""
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.event(690, "container", "input-lost", ("0", 3), **lost)
    for at, span in enumerate(offsets):
        history.transaction(700 + 10 * at, ("0", 3), span)
    assert history.judge() == code


@pytest.mark.parametrize(("first", "code"), [(30, 0), (50, 0), (45, 1)])
def test_a_container_that_dies_behind_a_gap_leaves_two_places(
    history: History, first: int, code: int
) -> None:
    """It has committed where it goes on, or not yet; a second gap begins where the first ends."""
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.event(690, "container", "input-lost", ("0", 3), **LOST)
    history.stop(700, ("0", 3))
    history.start(750, ("0", 4), fences=[("0", 3)])
    history.transaction(800, ("0", 4), (first, 59))
    assert history.judge() == code
    history.event(790, "container", "input-lost", ("0", 4), input=INPUT, first=50, next=first)
    assert history.judge() == (first < 50 and code)


@pytest.mark.parametrize(
    ("more", "first", "code"),
    [
        ({}, 0, 0),
        ({"first": None}, 0, 0),
        ({}, 5, 1),
        ({"task": "Partition 1"}, 0, 1),
        ({"next": 40}, 40, 0),
        ({"next": 40}, 45, 1),
    ],
)
def test_a_partition_begins_where_its_configuration_says(
    history: History, more: dict[str, Any], first: int, code: int
) -> None:
    """Not at its checkpoint, as ``samza.reset.offset`` wants it."""
    history.start(650, ("0", 3), fences=[("0", 2)])
    reset = {"task": TASK, "input": INPUT, "first": 30, "next": 0, **more}
    history.event(690, "container", "input-reset", ("0", 3), **reset)
    history.transaction(700, ("0", 3), (first, 59))
    history.transaction(720, ("0", 3), (60, 69))
    assert history.judge() == code


SET: dict[str, Any] = {"task": TASK, "input": INPUT, "first": 30, "next": 7}


@pytest.mark.parametrize(
    ("more", "first", "code"),
    [
        ({}, 7, 0),
        ({}, 30, 1),
        ({}, 9, 1),
        ({"next": 40}, 40, 0),
        ({"next": 40}, 45, 1),
        ({"next": None}, 7, 1),
        ({"task": "Partition 1"}, 7, 1),
    ],
)
def test_a_partition_goes_on_where_an_operator_has_set_it(
    history: History, more: dict[str, Any], first: int, code: int
) -> None:
    """There alone: what is lost beside it is lost, and so is what is left out later on."""
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.event(690, "container", "checkpoint-set", ("0", 3), **{**SET, **more})
    history.transaction(700, ("0", 3), (first, 59))
    history.transaction(720, ("0", 3), (60, 69))
    assert history.judge() == code
    history.transaction(740, ("0", 3), (71, 79))
    assert history.judge() == 1


@pytest.mark.parametrize(("first", "code"), [(7, 0), (30, 1)])
def test_what_an_operator_has_set_stays_until_a_container_commits(
    history: History, first: int, code: int
) -> None:
    """The first container dies before that; the next one reads the same checkpoint."""
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.event(690, "container", "checkpoint-set", ("0", 3), **SET)
    history.stop(695, ("0", 3))
    history.start(700, ("0", 4), fences=[("0", 3)])
    history.event(710, "container", "checkpoint-set", ("0", 4), **SET)
    history.transaction(720, ("0", 4), (first, 39))
    history.stop(730, ("0", 4))
    history.start(740, ("0", 5), fences=[("0", 4)])
    history.transaction(750, ("0", 5), (40, 49))
    assert history.judge() == code


@pytest.mark.parametrize(("first", "code"), [(7, 0), (12, 0), (15, 1)])
def test_input_may_be_lost_behind_what_an_operator_has_set(
    history: History, first: int, code: int
) -> None:
    """The container says both."""
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.event(690, "container", "checkpoint-set", ("0", 3), **SET)
    history.event(691, "container", "input-lost", ("0", 3), input=INPUT, first=7, next=12)
    history.transaction(700, ("0", 3), (first, 59))
    assert history.judge() == code


@pytest.mark.parametrize(
    ("offsets", "word"), [((25, 39), "went back"), ((31, 39), "skipped"), ((15, 19), "went back")]
)
def test_offsets_that_do_not_go_on_are_found(
    history: History, capsys: pytest.CaptureFixture[str], offsets: tuple[int, int], word: str
) -> None:
    """A successor begins neither before nor beyond the record after the last committed one."""
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.transaction(700, ("0", 3), offsets)
    assert history.judge() == 1
    output = capsys.readouterr().out
    assert broken(output) == [RULE]
    assert word in output


@pytest.mark.parametrize(("stood", "code"), [(29, 0), (28, 1)])
def test_a_partition_may_stand_while_another_of_its_task_moves(
    history: History, stood: int, code: int
) -> None:
    """Its last committed offset is reported again; an earlier one is not where it stood."""
    history.start(650, ("0", 3), fences=[("0", 2)])
    fields: dict[str, Any] = {"offsets": {TASK: {INPUT: stood, "kafka.b.0": [0, 3]}}}
    for at, name in ((700, "transaction-ending"), (701, "transaction-committed")):
        history.event(at, "container", name, ("0", 3), **fields)
    assert history.judge() == code


@pytest.mark.parametrize("first", [30, 40])
def test_a_transaction_of_unknown_outcome_leaves_two_places(history: History, first: int) -> None:
    """Its successor goes on before it or after it, as Kafka knows."""
    history.transaction(620, ("0", 2), (30, 39), is_known=False)
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.transaction(700, ("0", 3), (first, 49))
    assert history.judge() == 0


def test_a_place_inside_a_transaction_is_found(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of a transaction is never there."""
    history.transaction(620, ("0", 2), (30, 39), is_known=False)
    history.start(650, ("0", 3), fences=[("0", 2)])
    history.transaction(700, ("0", 3), (35, 49))
    assert history.judge() == 1
    assert broken(capsys.readouterr().out) == [RULE]


def test_gaps_can_be_allowed(history: History) -> None:
    """Compacted topics skip offsets; going back stays a fault."""
    history.transaction(620, ("0", 2), (33, 39))
    assert history.judge() == 1
    assert history.judge("--allow-gaps") == 0
    history.transaction(630, ("0", 2), (39, 45))
    assert history.judge("--allow-gaps") == 1


@pytest.mark.parametrize(("first", "code"), [(30, 0), (31, 1)])
def test_lines_of_an_earlier_release_are_read(history: History, first: int, code: int) -> None:
    """A first and a last offset are fields of their own there, in both lines of a transaction."""
    fields: dict[str, Any] = {"first": {TASK: {INPUT: first}}, "offsets": {TASK: {INPUT: 39}}}
    for at, name in ((620, "transaction-ending"), (621, "transaction-committed")):
        history.event(at, "container", name, ("0", 2), **fields)
    assert history.judge() == code
