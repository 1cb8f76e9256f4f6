"""A schedule of A4: the margin M is part of what a new attempt waits."""

from __future__ import annotations

import pytest

from homeport.appmaster.attempt.hold_back import HoldBack
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene
from tests.unit.world.world import ISOLATION_MS, LEASE_MS, MARGIN_MS

READ = "ask the end of __samza_coordinator_j_1 answered"


def waits_without_m(patch: pytest.MonkeyPatch) -> None:
    """A new attempt waits for G + L."""
    is_over = HoldBack.is_over
    patch.setattr(HoldBack, "is_over", lambda held, now_ms: is_over(held, now_ms + MARGIN_MS))


@schedule("A4", waits_without_m, "0@1 on a still ran")
def a_host_s_clock_misses_less_than_m(scene: Scene) -> None:
    """The machine of attempt 1 loses the brokers and the ResourceManager, right after a look there.

    Its keeper renews for G. In the last lease the hypervisor of host a holds it for half a second,
    which its clock misses: so much longer than G + L after that look 0@1 runs.
    """
    old = scene.working()
    new = scene.attempt(attempt=2, host="am2")
    scene.driver_of(new)
    scene.halt(new.driver, "send to __samza_coordinator_j_1")
    scene.run(500)  # so that the last renewal comes shortly before the end of G
    scene.halt(old.keeper, READ)
    scene.world.network.cut.add("am")
    old.keeper.go_on()
    new.driver.go_on()
    scene.run(ISOLATION_MS)
    scene.hosts.freeze("a")
    scene.run(MARGIN_MS - 50)
    scene.hosts.thaw("a")
    scene.until(lambda: scene.hosts.has_child("0@2"), "0@2 begins", LEASE_MS + 2 * MARGIN_MS)
