"""What a changed configuration makes of a rolling restart, and of what it sees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.upgrade.observed import ContainerSeen, Seen
from homeport.appmaster.upgrade.rolling import (
    NOT_YET_BACK,
    Reconfigured,
    following,
    older_for,
    seen_with,
)
from homeport.config.config import Config
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import REWRITTEN, UpgradePhase

P0, P1 = ProcessorId("0"), ProcessorId("1")


def changed(
    version: int, before: dict[str, str], after: dict[str, str], *names: str
) -> Reconfigured:
    """That change of the run "app"; each container is watched for a second."""
    return Reconfigured("app", version, Config(before), Config(after), names, 1000)


FIRST = following(None, changed(3, {"my.key": "4"}, {"my.key": "5"}, "my.key"))


def test_another_change_on_the_way_keeps_the_oldest_values() -> None:
    """They are the last that all containers have run with."""
    given = replace(FIRST, state=replace(FIRST.state, given=(P0,), current=P0))
    other = {"my.key": "6", "my.other": "1"}
    second = following(given, changed(4, {"my.key": "5"}, other, "my.key", "my.other"))
    assert second.former == {"my.key": "4", "my.other": None}
    assert (second.version, second.first, second.state.given) == (4, 3, ())
    assert second.state.previous == "JobModel 2"
    assert [second.release(v) for v in (2, 3, 4, 5)] == [
        "JobModel 2",
        "JobModel 3",
        "JobModel 4",
        "JobModel 4",
    ]


@pytest.mark.parametrize(
    ("phase", "reason"), [(UpgradePhase.FORWARD, REWRITTEN), (UpgradePhase.BACK, "it failed")]
)
def test_the_values_from_before_are_the_way_back(phase: UpgradePhase, reason: str) -> None:
    """A user has written them, or the driver after a failure, whose reason stays."""
    state = replace(FIRST.state, phase=phase, reason="it failed" if phase == "back" else "")
    if phase is UpgradePhase.FORWARD:
        state = replace(state, given=(P0,), current=P0, lag_before=7)
    on = replace(FIRST, state=state)
    back = following(on, changed(4, {"my.key": "5"}, {"my.key": "4"}, "my.key"))
    assert (back.state.phase, back.back, back.state.reason) == (UpgradePhase.BACK, 4, reason)
    assert (back.state.current, back.state.lag_before) == (None, None), "none is watched any more"
    assert [back.release(v) for v in (2, 3, 4)] == ["JobModel 2", "JobModel 3", "JobModel 2"]
    assert on.lacks_former is (phase is UpgradePhase.BACK)
    assert not back.lacks_former


def test_a_container_has_the_values_of_the_jobmodel_that_it_started_with() -> None:
    """It is not known where that JobModel is not known; nothing has to be prepared."""
    unheard = ContainerSeen(ProcessorId("2"), is_known=False)
    containers = (ContainerSeen(P0, prepared="x"), ContainerSeen(P1, unprepared="x"), unheard)
    seen = seen_with(Seen(containers), FIRST, {P0: 3, unheard.processor_id: 3})
    first, second, third = seen.containers
    assert not third.is_known, "its launcher was not heard"
    assert (first.package, first.is_known, first.prepared) == ("JobModel 3", True, "JobModel 2")
    assert (second.is_known, second.unprepared) == (False, "")
    assert not seen.hindrance


def test_nothing_is_restarted_until_the_former_values_are_in_force() -> None:
    """Another hindrance stands first."""
    back = replace(FIRST, state=replace(FIRST.state, phase=UpgradePhase.BACK))
    assert seen_with(Seen(()), back, {}).hindrance == NOT_YET_BACK
    assert seen_with(Seen((), "a command"), back, {}).hindrance == "a command"


def test_until_its_turn_a_processor_starts_with_the_values_from_before() -> None:
    """What fails with them does not, as the change may mend it; on the way back all do."""
    assert list(older_for(FIRST, (P0, P1), {P1})) == [P0]
    back = replace(FIRST, state=replace(FIRST.state, phase=UpgradePhase.BACK))
    assert list(older_for(back, (P0, P1), {P1})) == [P0, P1]
    given = replace(FIRST, state=replace(FIRST.state, given=(P0,)))
    assert list(older_for(given, (P0, P1), ())) == [P1]
