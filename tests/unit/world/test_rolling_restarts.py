"""A key that only a start reads comes container by container, is watched, and is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from homeport.cli.yarn.job import SOURCE
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager
from homeport.job_coordinator.model.upgrade import REWRITTEN
from tests.unit.world.am import Attempt
from tests.unit.world.scene import Scene
from tests.unit.world.world import World

WATCHED = {"cluster-manager.rolling-restart.watch.ms": "2000"}


def _rolling(attempt: Attempt) -> Mapping[str, Any]:
    return attempt.status()["rolling_restart"] or {}


def _ends(scene: Scene, attempt: Attempt, phase: str) -> None:
    """Records come all the while, so that what starts shows whether it works."""

    def has_ended() -> bool:
        return bool(_rolling(attempt).get("phase") == phase)

    for _ in range(60):
        if has_ended():
            return
        scene.produce(1)
        scene.produce(1, b"other", partition=1)
        scene.run(1000)
    scene.require(has_ended(), f"the rolling restart has not ended {phase}: {_rolling(attempt)}")


def _permits(world: World) -> list[str]:
    return [str(fact.who) for fact in world.facts_of("driver:permit-granted")]


def _value(world: World, key: str) -> str | None:
    with world.stream() as stream:
        return ConfigManager(stream).read().get(key)


def _at_once(world: World, key: str, value: str) -> None:
    with world.stream() as stream:
        stream.write(RollingRestartManager(stream).at_once_messages(key, value, is_at_once=True))


@pytest.mark.world(2, 2, WATCHED)
def test_one_container_restarts_after_the_other(scene: Scene) -> None:
    """The second one is stopped when the first one has worked for the time of its watch."""
    attempt = scene.working()
    scene.configure("my.key", "5")
    _ends(scene, attempt, "done")
    assert _permits(scene.world) == ["0@1", "1@1", "0@2", "1@2"]
    (started,) = [f for f in scene.world.facts_of("container:started") if str(f.who) == "0@2"]
    (stopped,) = [f for f in scene.world.facts_of("launcher:child-stopped") if str(f.who) == "1@1"]
    assert stopped.at_ms >= started.at_ms + 2000
    scene.work(2)


@pytest.mark.parametrize("bug", ["at-start", "at-work"])
@pytest.mark.parametrize("fault", ["none", "driver"])
@pytest.mark.world(2, 2, WATCHED)
def test_a_value_with_which_a_container_fails_is_taken_back(
    scene: Scene, bug: str, fault: str
) -> None:
    """The stream has the former value, which was none; the other container never stopped."""
    attempt = scene.working()
    scene.configure("my.bug", bug)
    if fault == "driver":
        scene.until(lambda: "0@2" in _permits(scene.world), "it is on its way")
        scene.produce(1)
        scene.until(lambda: _rolling(attempt).get("phase") == "back", "it goes back")
        attempt.driver.kill()
    _ends(scene, attempt, "gone-back")
    assert f"ValueError: {bug}" not in str(_rolling(attempt)), "its log may hold a secret"
    assert "failed with the new configuration" in _rolling(attempt)["reason"]
    assert _value(scene.world, "my.bug") is None
    assert "1@2" not in _permits(scene.world)
    assert not scene.has_fact("driver:job-ending")
    scene.work(2)


@pytest.mark.world(2, 2, WATCHED)
def test_what_fails_before_its_turn_gets_the_new_value_and_may_be_mended_by_it(
    scene: Scene,
) -> None:
    """A value that makes every start fail: with the next one all run, without an order."""
    attempt = scene.working()
    _at_once(scene.world, "my.bug", "at-work")
    scene.configure("my.bug", "at-work")
    scene.until(lambda: "1@3" in _permits(scene.world), "both have the bug")
    scene.produce(1)
    scene.produce(1, b"other", partition=1)
    scene.until(lambda: {"0@5", "1@5"} <= {*_permits(scene.world)}, "both fail again and again")
    scene.configure("my.bug", "mended")
    _ends(scene, attempt, "done")
    scene.work(2)


@pytest.mark.world(2, 2, WATCHED | {"cluster-manager.rolling-restart.watch.ms": "20000"})
def test_what_moves_before_its_turn_starts_with_the_value_from_before(scene: Scene) -> None:
    """Its permit names the JobModel that it had."""
    attempt = scene.working()
    scene.configure("my.key", "5")
    scene.until_started("0@2")
    scene.hosts.launcher_of(scene.hosts.child("1@1")).kill()
    scene.until(lambda: "1@2" in _permits(scene.world), "the other one starts again")
    (again,) = [f for f in scene.world.facts_of("driver:permit-granted") if str(f.who) == "1@2"]
    assert again.fields["model_version"] == 1
    _ends(scene, attempt, "done")
    assert _permits(scene.world)[-1] == "1@3"
    scene.work(2)


@pytest.mark.world(2, 2, WATCHED)
def test_the_next_driver_goes_on(scene: Scene) -> None:
    """Where the first one has died in the watch."""
    attempt = scene.working()
    scene.configure("my.key", "5")
    scene.until_started("0@2")
    attempt.driver.kill()
    _ends(scene, attempt, "done")
    assert _permits(scene.world) == ["0@1", "1@1", "0@2", "1@2"]
    scene.work(2)


@pytest.mark.world(2, 2, WATCHED)
def test_the_next_attempt_takes_back_what_fails(scene: Scene) -> None:
    """All its containers start with the value; the former one is in the record."""
    attempt = scene.working()
    scene.configure("my.bug", "at-work")
    scene.until(lambda: bool(_rolling(attempt)), "it is in force")
    second = scene.attempt(attempt=2, host="am2")
    scene.until(lambda: bool(second.locality()), "the next one works")
    assert _rolling(second)["phase"] == "forward"
    _ends(scene, second, "gone-back")
    assert _value(scene.world, "my.bug") is None
    scene.work(2)


@pytest.mark.parametrize(("then", "phase"), [(None, "gone-back"), ("6", "done")])
@pytest.mark.world(2, 2, WATCHED | {"my.key": "4"})
def test_what_is_written_on_the_way_is_in_force_in_the_end(
    scene: Scene, then: str | None, phase: str
) -> None:
    """The former value turns it back; another one begins again, and goes through all."""
    attempt = scene.working()
    scene.configure("my.key", "5")
    scene.until_started("0@2")
    scene.configure("my.key", then or "4")
    _ends(scene, attempt, phase)
    assert scene.has_fact("container:started", "0@3")
    assert scene.has_fact("container:started", "1@2") is (then is not None)
    assert _rolling(attempt)["reason"] == ("" if then else REWRITTEN)
    assert _value(scene.world, "my.key") == (then or "4")
    scene.work(2)


@pytest.mark.world(2, 2, WATCHED)
def test_all_restart_at_once_where_that_is_ordered(scene: Scene) -> None:
    """As its tool writes both records in one transaction."""
    attempt = scene.working()
    _at_once(scene.world, "my.key", "5")
    scene.configure("my.key", "5")
    for child in ("0@3", "1@3"):  # the JobModel has overtaken the epochs between
        scene.until(partial(scene.has_fact, "container:started", child), "it starts")
    assert not _rolling(attempt)
    scene.work(2)


@pytest.mark.world(1, 1, WATCHED)
def test_a_new_run_begins_with_what_was_written(scene: Scene) -> None:
    """The record of the run before is void."""
    attempt = scene.working()
    scene.configure("my.key", "5")
    scene.until(lambda: bool(_rolling(attempt)), "it is in force")
    with scene.world.stream() as stream:
        ConfigManager(stream).replace(ConfigManager(stream).read(), SOURCE)
    second = scene.attempt(submission=2)
    scene.until(lambda: bool(second.locality()), "the next run works")
    scene.work(2)
    assert not _rolling(second)


# --- a tuning key is written while the job runs: its containers take it over


OFTEN_MS = 500
RARELY = {"task.commit.ms": "600000"}


def _flushes(world: World, child: str) -> int:
    return sum(str(f.who) == child for f in world.facts_of("container:commit"))


def _retuned(scene: Scene, child: str) -> bool:
    return scene.has_fact("container:retuned", child)


@pytest.mark.world(2, 2, RARELY)
def test_a_tuning_key_reaches_running_containers_without_a_restart(scene: Scene) -> None:
    """Both containers run on under epoch 1, and flush as often as the new value says."""
    attempt = scene.working()
    version = attempt.status()["job"]["model_version"]
    scene.configure("task.commit.ms", str(OFTEN_MS))
    for child in ("0@1", "1@1"):
        scene.until(lambda child=child: _retuned(scene, child), "it takes it over")  # type: ignore[misc]  # lambda
    assert attempt.status()["job"]["model_version"] == version + 1
    before = _flushes(scene.world, "0@1")
    for _ in range(3):
        scene.work(1)
        scene.run(2 * OFTEN_MS)
    assert _flushes(scene.world, "0@1") >= before + 3
    assert len(scene.world.facts_of("driver:permit-granted")) == 2


@pytest.mark.world(1, 1, RARELY)
def test_a_container_that_starts_meanwhile_takes_it_over_too(scene: Scene) -> None:
    """Its permit names the version before; it learns of the new one from its launcher."""
    attempt = scene.attempt()
    child = scene.child("0@1")
    child.stop()
    scene.configure("task.commit.ms", str(OFTEN_MS))
    scene.run(1500)
    child.go_on()
    scene.until(lambda: _retuned(scene, "0@1"), "it takes it over")
    assert attempt.status()["job"]["model_version"] == 2
    scene.work(1)


@pytest.mark.world(1, 1, RARELY)
def test_a_driver_that_dies_meanwhile_does_not_keep_it_from_them(scene: Scene) -> None:
    """The next driver names the version in force, and the container asks that one."""
    attempt = scene.working()
    attempt.driver.kill()
    scene.configure("task.commit.ms", str(OFTEN_MS))
    scene.until(lambda: _retuned(scene, "0@1"), "it takes it over")
    assert len(scene.world.facts_of("driver:permit-granted")) == 1
