"""What an adjunct store takes of what it is handed, as layers that are written as a whole."""

from __future__ import annotations

from homeport.container.adjunct.manager import Intake, Layer
from homeport.container.adjunct.steps import flush_steps
from homeport.container.adjunct.versions import Progress, Run
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_P0, _P1 = (SystemStreamPartition("kafka", "planes", number) for number in (0, 1))


def _run(partition: SystemStreamPartition, *offsets: int) -> Run:
    return Run(partition, offsets, [0] * len(offsets))


def test_a_layer_has_the_last_value_of_each_key_and_where_that_leaves_the_store() -> None:
    """Of all partitions since the layer before; a record without key only moves the position."""
    intake = Intake({_P0: Progress(5), _P1: Progress(0)})
    assert intake.sealed() is None
    intake.take(_run(_P0, 5, 6, 9), [b"a", b"b", b"a"], [b"1", b"2", None])
    intake.take(_run(_P1, 0), [None], [b"x"])
    assert intake.sealed() == Layer(
        {b"a": None, b"b": b"2"}, {_P0: Progress(10, 3), _P1: Progress(1, 1)}
    )
    assert intake.sealed() is None
    intake.take(_run(_P1, 3), [b"c"], [b"4"])
    assert intake.sealed() == Layer({b"c": b"4"}, {_P0: Progress(10, 3), _P1: Progress(4, 2)})


def test_what_is_read_again_changes_nothing() -> None:
    """A record below the store's position is passed over, one at it is not."""
    intake = Intake({_P0: Progress(5, 2)})
    intake.take(_run(_P0, 2, 4), [b"a", b"a"], [b"old", b"old"])
    assert intake.sealed() is None
    intake.take(_run(_P0, 4, 5), [b"a", b"b"], [b"old", b"1"])
    assert intake.sealed() == Layer({b"b": b"1"}, {_P0: Progress(6, 3)})


def test_a_flush_of_what_did_not_move_makes_it_younger() -> None:
    """And is all that there is to do."""
    steps = flush_steps("planes/Partition_0", has_moved=True)
    assert [str(step) for step in steps] == [
        "flush-adjunct planes/Partition_0",
        "touch-adjunct planes/Partition_0",
    ]
    assert flush_steps("planes/Partition_0", has_moved=False) == steps[1:]
