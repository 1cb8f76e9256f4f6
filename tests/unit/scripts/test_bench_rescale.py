"""scripts/bench rescale: what it makes of outputs, of JobModels and of a history."""

from __future__ import annotations

from pathlib import Path

from benchmarks.rescale.outputs import Gap, Outputs
from benchmarks.rescale.phases import STEPS, Begun, Side, begun
from benchmarks.rescale.rows import rows_of
from benchmarks.rescale.runs import MOVED, STAYED, UNTOUCHED, Change, Task, kinds
from check_history.reading import Event


def _outputs(*times_and_runs: tuple[float, str]) -> Outputs:
    outputs = Outputs()
    for number, (at_ms, run) in enumerate(times_and_runs, start=1):
        outputs.add(at_ms, 0, b"k", f"{number} {run}".encode())
    return outputs


def test_a_gap_is_the_longest_time_between_two_outputs_of_a_span() -> None:
    """One that has begun before the span counts; what lies outside it does not."""
    outputs = _outputs((0, "a"), (900, "a"), (1000, "a"), (1700, "b"), (1800, "b"), (5000, "b"))
    assert outputs.gap(0, 950, 1750) == Gap(0.7, 1700, 1)
    assert outputs.gap(0, 1750, 1790) == Gap(0.1, None, 0)
    assert outputs.gap(0, 1750, 6000) == Gap(3.2, None, 0)
    assert outputs.gap(0, 0, 950) == Gap(0.9, None, 0)


def test_all_tasks_have_output_since_a_time_when_the_last_one_has() -> None:
    """One that has none yet counts."""
    outputs = _outputs((1000, "a"))
    assert outputs.all_since(999, 1)
    assert not outputs.all_since(1000, 1)
    assert not outputs.all_since(999, 2)


def test_a_count_that_is_wrong_is_named() -> None:
    """One that comes twice, one that is left out, and one that never comes."""
    sent = {(0, b"k"): 2}
    assert _outputs((0, "a"), (1, "a")).faults(sent) == []
    twice = _outputs((0, "a"))
    twice.add(1, 0, b"k", b"1 b")
    assert twice.faults(sent) == ["partition 0, key k: output 2 says 1"]
    left_out = Outputs()
    left_out.add(0, 0, b"k", b"2 a")
    assert left_out.faults(sent) == [
        "partition 0, key k: output 1 says 2",
        "partition 0, key k: 2 sent, 1 counted",
    ]
    assert not left_out.has_all(sent)
    assert Outputs().faults(sent) == ["partition 0, key k: 2 sent, 0 counted"]


def _tasks(**partitions: tuple[int, ...]) -> dict[str, frozenset[str]]:
    return {p[1:]: frozenset(f"Partition {n}" for n in own) for p, own in partitions.items()}


_FEW = _tasks(c0=(0, 3), c1=(1,), c2=(2,))
_MORE = _tasks(c0=(0,), c1=(1,), c3=(3, 2))


def test_a_task_stays_or_moves_or_is_not_touched() -> None:
    """By the container that it had, and by what else moves there."""
    assert kinds(_FEW, _MORE) == {0: STAYED, 1: UNTOUCHED, 2: MOVED, 3: MOVED}


def _event(at_ms: int, name: str, processor: str | None, epoch: int | None, cause: str) -> Event:
    where = (Path(), Path("f"), 1)
    fields = {"cause": cause, "seconds": {"spark": 0.5}}
    return Event(at_ms, at_ms, at_ms, "nm1", 1, "driver", name, processor, epoch, fields, *where)


_HISTORY = [
    _event(at_ms, name, processor, epoch, cause)
    for at_ms, name, processor, epoch, cause in (
        (900, "decision", None, None, "JobModelPublished version 1"),
        (950, "child-stopped", "0", 1, ""),
        (1200, "decision", None, None, "JobModelPublished version 2"),
        (1250, "stop-ordered", "2", 1, ""),
        (1300, "child-stopped", "2", 1, ""),
        (1400, "stop-ordered", "0", 1, ""),
        (1500, "child-stopped", "0", 1, ""),
        (1600, "child-stopped", "1", 1, ""),
        (1450, "permit-granted", "3", 1, ""),
        (2000, "child-started", "3", 1, ""),
        (2100, "fenced", "3", 1, ""),
        (2200, "restore-finished", "3", 1, ""),
        (2600, "restore-finished", "3", 1, ""),
        (2700, "started", "3", 1, ""),
        (3000, "transaction-committed", "3", 1, ""),
        (4000, "transaction-committed", "3", 1, ""),
    )
]


def test_the_time_of_a_change_goes_into_steps() -> None:
    """Each after the one before it; the owners of its tasks let go, others do not count.

    A permit that was given before they did took nothing.
    """
    before = Side({"0": 1, "1": 1, "2": 1}, _FEW)
    after = Side({"1": 1, "3": 1}, _MORE)
    (found,) = begun(_HISTORY, 1000, before, after)
    assert (found.processor_id, found.seconds) == ("3", {"spark": 0.5})
    taken = dict(zip(STEPS, (0.2, 0.2, 0.1, 0, 0.5, 0.1, 0.5, 0.1, 0.3), strict=True))
    assert found.steps_s == taken
    assert round(found.total_s, 6) == 2


def _change(pause_s: float, *, lives: bool) -> Change:
    steps = dict.fromkeys(STEPS, 0.25)
    return Change(
        counts=(3, 5),
        total_s=2.5,
        tasks=[Task(0, STAYED, Gap(pause_s, 1, 1)), Task(1, MOVED, Gap(2.5, 1, 1))],
        begun=[Begun("0", steps, {"spark": 0.5, "fence": 0.01}), Begun("3", steps, {})],
        lived={"0": lives, "1": True},
        records=60_000,
        load=1.0,
        busy=0.5,
    )


def test_a_change_becomes_figures_beside_their_targets() -> None:
    """Tasks that stay, tasks that move, processes; a step has its line for both kinds."""
    rows = {row.what.strip(): row for row in rows_of(_change(0.25, lives=True))}
    assert rows["3 -> 5 containers: until all have output of their new run"].value == "2.5 s"
    assert rows["longest pause of tasks that stay where others move"].reached is True
    assert rows["longest pause of tasks that move"].reached is False
    assert "longest pause of tasks of other containers" not in rows
    assert rows["processes restarted of containers that stay"].reached is True
    assert rows["new containers: key written to first commit"].value == "2.25 s (2.25 to 2.25)"
    assert rows["of the start: spark"].value == "0.5 s (0.5 to 0.5)"
    assert "of the start: fence" not in rows
    rows = {row.what.strip(): row for row in rows_of(_change(0.5, lives=False))}
    assert rows["longest pause of tasks that stay where others move"].reached is False
    assert rows["processes restarted of containers that stay"].value == "1"
