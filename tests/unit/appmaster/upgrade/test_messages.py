"""What a person reads that waits for an upgrade."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.upgrade.messages import end, steps
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import UpgradePhase, UpgradeState

NEW, OLD = "ab" * 32, "cd" * 32
P0, S0 = ProcessorId("0"), ProcessorId("0-0")
BEGUN = UpgradeState("u", "app", NEW, None, 1)
FIRST = replace(BEGUN, given=(S0,), current=S0)
WATCHED = replace(FIRST, current=None)
BACK = replace(BEGUN, phase=UpgradePhase.BACK, given=(S0,), current=P0, reason="0 failed")


def test_each_step_is_a_line() -> None:
    """What was given, what runs; nothing where nothing has changed."""
    assert list(steps(None, BEGUN, 2)) == [
        "upgrade to package abababababab from that of the submission"
    ]
    assert list(steps(BEGUN, FIRST, 2)) == ["0-0: gets the package (1 of 2)"]
    assert list(steps(FIRST, WATCHED, 2)) == ["0-0: runs the package"]
    both = replace(WATCHED, given=(S0, P0), current=P0)
    assert list(steps(FIRST, both, 2)) == ["0: gets the package (2 of 2)", "0-0: runs the package"]
    assert list(steps(both, both, 2)) == []


def test_the_way_back_is_told_with_its_reason() -> None:
    """Once."""
    both = replace(WATCHED, given=(S0, P0), current=P0)
    assert list(steps(both, BACK, 2)) == [
        "goes back to package that of the submission: 0 failed",
        "0: gets the package from before",
    ]
    later = replace(BACK, given=(), current=S0)
    assert list(steps(BACK, later, 2)) == ["0-0: gets the package from before"]
    gone = replace(later, phase=UpgradePhase.GONE_BACK, current=None)
    assert list(steps(later, gone, 2)) == ["0-0: runs the package from before"]


def test_a_later_look_tells_what_there_is() -> None:
    """Another upgrade was seen before, or none."""
    lines = list(steps(replace(FIRST, id="before"), replace(FIRST, previous=OLD), 2))
    assert lines == [
        "upgrade to package abababababab from cdcdcdcdcdcd",
        "0-0: gets the package (1 of 2)",
    ]


def test_a_first_look_on_the_way_back_has_the_reason() -> None:
    """As by an operator that asks after the failure."""
    assert list(steps(None, BACK, 2)) == [
        "upgrade to package abababababab from that of the submission",
        "goes back to package that of the submission: 0 failed",
        "0-0: gets the package (1 of 2)",
    ]


def test_the_end_says_what_runs() -> None:
    """And what is left to do."""
    assert end(replace(WATCHED, phase=UpgradePhase.DONE)) == (
        "done: all run package abababababab; yarn.package.path must name it for the next deployment"
    )
    gone = replace(BACK, phase=UpgradePhase.GONE_BACK)
    assert end(gone) == "gone back to package that of the submission: 0 failed"
