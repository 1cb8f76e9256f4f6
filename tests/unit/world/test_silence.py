"""And then nothing more comes from it: each wait of a launcher and of a container has its end."""

from __future__ import annotations

import pytest

from tests.unit.world.judges import UnsafeError
from tests.unit.world.scene import Scene
from tests.unit.world.schedules import silence
from tests.unit.world.schedules.silence import WAITS, Wait
from tests.unit.world.world import World

pytestmark = pytest.mark.search


@pytest.mark.parametrize("wait", WAITS, ids=str)
def test_a_container_waits_for_no_partner_for_ever(wait: Wait) -> None:
    """It ends within the time that the table names, uncharged, and its successor works."""
    wait.play()


@pytest.mark.parametrize("wait", [wait for wait in WAITS if wait.removed is not None], ids=str)
def test_without_its_time_the_wait_has_no_end(wait: Wait) -> None:
    """The same silence, with the limit taken out."""
    with pytest.raises(UnsafeError, match="the wait has ended"):
        wait.play(wait.removed)


@pytest.mark.parametrize(
    ("play", "removed", "verdict", "containers"),
    [
        (silence.a_launcher_without_the_am, silence.stays_for_ever, "it has gone", 1),
        (
            silence.a_stop_that_the_am_does_not_take,
            silence.reports_to_the_am_alone,
            "its stop is recorded",
            1,
        ),
        (silence.a_former_owner_that_never_reports_its_stop, None, "", 2),
    ],
)
def test_a_launcher_and_a_former_owner_hold_up_nothing_for_ever(
    play: silence.Play, removed: silence.Mutant | None, verdict: str, containers: int
) -> None:
    """And do so without the rule."""
    with World(containers, containers) as world:
        play(Scene(world))
    if removed is not None:
        with World(containers, containers) as world:
            removed(world.patch)
            with pytest.raises(UnsafeError, match=verdict):
                play(Scene(world))
