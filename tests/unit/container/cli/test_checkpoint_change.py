"""The arguments of ``homeport checkpoint set``, before any request."""

from __future__ import annotations

import pytest

from homeport.config.errors import ConfigError
from homeport.container.cli.checkpoint_change import Place, changed
from homeport.container.cli.checkpoint_commands import chosen_partition, milliseconds
from homeport.container.kafka.checkpoints import Checkpoint
from homeport.container.progress.checkpoint import Change
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel


def test_exactly_one_option_gives_the_place() -> None:
    """Offset 0 is one like any other."""
    assert Place.of(offset=0, earliest=False, latest=False, at_ms=None).offset == 0
    assert Place.of(offset=None, earliest=False, latest=True, at_ms=None).is_latest


@pytest.mark.parametrize(("offset", "earliest"), [(None, False), (7, True)])
def test_no_place_or_two_places_are_refused(offset: int | None, *, earliest: bool) -> None:
    """Their meaning is not clear."""
    with pytest.raises(ConfigError, match="exactly one of --offset, --earliest"):
        Place.of(offset=offset, earliest=earliest, latest=False, at_ms=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("1372939200000", 1_372_939_200_000),
        ("2013-07-04T12:00:00+00:00", 1_372_939_200_000),
        ("2013-07-04T14:00:00+02:00", 1_372_939_200_000),
    ],
)
def test_a_time_is_milliseconds_or_iso_8601(text: str | None, expected: int | None) -> None:
    """With its time zone."""
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["yesterday", "2013-07-04T12:00:00", "-1", ""])
def test_a_time_of_nowhere_is_refused(text: str) -> None:
    """Without a zone it would be another one on each machine."""
    with pytest.raises(ConfigError, match="with a time zone"):
        milliseconds(text)


def test_a_partition_is_one_of_the_tasks() -> None:
    """Topics have dots in their names, so the whole name is compared."""
    ssp = SystemStreamPartition("kafka", "a.b", 3)
    task = TaskModel(TaskName("Partition 3"), (ssp,), 3)
    assert chosen_partition(task, "kafka.a.b.3") == ssp
    with pytest.raises(ConfigError, match=r"the task reads kafka\.a\.b\.3"):
        chosen_partition(task, "kafka.a.b.4")


ONE, OTHER = (SystemStreamPartition("kafka", "in", number) for number in (0, 1))


def test_a_change_says_where_the_partition_went_on_before() -> None:
    """The other partitions stay; without a checkpoint it went on nowhere."""
    first = changed(Checkpoint({ONE: 139, OTHER: 5}), ONE, 7)
    assert first == Checkpoint({ONE: 6, OTHER: 5}, (Change(ONE, 140, 7),))
    assert changed(Checkpoint({}), ONE, 0) == Checkpoint({ONE: -1}, (Change(ONE, None, 0),))


def test_changes_that_no_container_has_seen_add_up() -> None:
    """Of one partition the last counts, from where it stood before the first."""
    first = changed(Checkpoint({ONE: 139, OTHER: 5}), ONE, 7)
    both = changed(first, OTHER, 0)
    assert both.changes == (Change(ONE, 140, 7), Change(OTHER, 6, 0))
    again = changed(both, ONE, 100)
    assert again == Checkpoint({ONE: 99, OTHER: -1}, (Change(ONE, 140, 100), Change(OTHER, 6, 0)))
