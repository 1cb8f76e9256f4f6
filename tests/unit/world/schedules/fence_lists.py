"""A schedule of I1: an incarnation that is only revoked may yet begin, so it stays in all lists."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from homeport.appmaster.allocation import container_allocator
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.lease.fencing import Fencing
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene


def the_driver_s_fence_is_enough(patch: pytest.MonkeyPatch) -> None:
    """The driver reports all that it has fenced, and they leave the lists, stopped or not."""
    drop = container_allocator._drop_unfenced

    def drop_all(draft: Draft, incarnations: Iterable[Incarnation], _: object) -> None:
        gone = frozenset(incarnations)
        drop(draft, gone, lambda p: p.incarnation in gone)

    patch.setattr(container_allocator, "_drop_unfenced", drop_all)
    patch.setattr(Fencing, "lost", Fencing.stopped)


@schedule("I1", the_driver_s_fence_is_enough, "0@1 wrote to task 0 after 0@2")
def one_that_the_driver_has_fenced_begins_late(scene: Scene) -> None:
    """0@1 has not initialised its id when its machine stands still; the driver does, on evidence.

    Then the machine goes on for a moment. No host is there for 0@2 yet, so 0@1 finds its own epoch
    the newest one, begins, and stands still again with a transaction computed. Kafka accepted its
    late init: the driver's fence is undone, and only the list of 0@2's permit still names 0@1.
    """
    scene.attempt()
    scene.child("0@1")
    for host in scene.cluster.hosts:
        scene.cluster.hosts[host] = False
    child = scene.hosts.child("0@1")
    scene.halt(child, "init homeport.j.1.processor.0.1")
    scene.hosts.freeze(child.host)
    scene.until_revoked("0@1")
    scene.run(1000)
    scene.world.links.cut.add((scene.hosts.launcher_of(child).name, "*"))
    child.stop_at("send to out")
    scene.produce(2)
    scene.hosts.thaw(child.host)
    scene.until(lambda: child.is_stopped, "0@1 is about to send")
    scene.hosts.freeze(child.host)
    scene.cluster.hosts[Host("b")] = True
    scene.until_started("0@2")
    scene.until_counted()
    scene.hosts.thaw(child.host)
    scene.run(2000)
