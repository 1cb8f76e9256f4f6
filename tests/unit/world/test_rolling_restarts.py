"""A key that only a start reads comes container by container, is watched, and is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from homeport.cli.yarn.job import SOURCE
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager
from homeport.job_coordinator.model.rolling_restart import REWRITTEN
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


def test_one_container_restarts_after_the_other() -> None:
    """The second one is stopped when the first one has worked for the time of its watch."""
    with World(2, 2, WATCHED) as world:
        scene = Scene(world)
        attempt = scene.working()
        scene.configure("my.key", "5")
        _ends(scene, attempt, "done")
        assert _permits(world) == ["0@1", "1@1", "0@2", "1@2"]
        (started,) = [f for f in world.facts_of("container:started") if str(f.who) == "0@2"]
        (stopped,) = [f for f in world.facts_of("launcher:child-stopped") if str(f.who) == "1@1"]
        assert stopped.at_ms >= started.at_ms + 2000
        scene.work(2)
        scene.judge()


@pytest.mark.parametrize("bug", ["at-start", "at-work"])
@pytest.mark.parametrize("fault", ["none", "driver"])
def test_a_value_with_which_a_container_fails_is_taken_back(bug: str, fault: str) -> None:
    """The stream has the former value, which was none; the other container never stopped."""
    with World(2, 2, WATCHED) as world:
        scene = Scene(world)
        attempt = scene.working()
        scene.configure("my.bug", bug)
        if fault == "driver":
            scene.until(lambda: "0@2" in _permits(world), "it is on its way")
            scene.produce(1)
            scene.until(lambda: _rolling(attempt).get("phase") == "back", "it goes back")
            attempt.driver.kill()
        _ends(scene, attempt, "gone-back")
        assert f"ValueError: {bug}" not in str(_rolling(attempt)), "its log may hold a secret"
        assert "failed with the new configuration" in _rolling(attempt)["reason"]
        assert _value(world, "my.bug") is None
        assert "1@2" not in _permits(world)
        assert not scene.has_fact("driver:job-ending")
        scene.work(2)
        scene.judge()


def test_what_fails_before_its_turn_gets_the_new_value_and_may_be_mended_by_it() -> None:
    """A value that makes every start fail: with the next one all run, without an order."""
    with World(2, 2, WATCHED) as world:
        scene = Scene(world)
        attempt = scene.working()
        _at_once(world, "my.bug", "at-work")
        scene.configure("my.bug", "at-work")
        scene.until(lambda: "1@3" in _permits(world), "both have the bug")
        scene.produce(1)
        scene.produce(1, b"other", partition=1)
        scene.until(lambda: {"0@5", "1@5"} <= {*_permits(world)}, "both fail again and again")
        scene.configure("my.bug", "mended")
        _ends(scene, attempt, "done")
        scene.work(2)
        scene.judge()


def test_what_moves_before_its_turn_starts_with_the_value_from_before() -> None:
    """Its permit names the JobModel that it had."""
    with World(2, 2, WATCHED | {"cluster-manager.rolling-restart.watch.ms": "20000"}) as world:
        scene = Scene(world)
        attempt = scene.working()
        scene.configure("my.key", "5")
        scene.until_started("0@2")
        scene.hosts.launcher_of(scene.hosts.child("1@1")).kill()
        scene.until(lambda: "1@2" in _permits(world), "the other one starts again")
        (again,) = [f for f in world.facts_of("driver:permit-granted") if str(f.who) == "1@2"]
        assert again.fields["model_version"] == 1
        _ends(scene, attempt, "done")
        assert _permits(world)[-1] == "1@3"
        scene.work(2)
        scene.judge()


def test_the_next_driver_goes_on() -> None:
    """Where the first one has died in the watch."""
    with World(2, 2, WATCHED) as world:
        scene = Scene(world)
        attempt = scene.working()
        scene.configure("my.key", "5")
        scene.until_started("0@2")
        attempt.driver.kill()
        _ends(scene, attempt, "done")
        assert _permits(world) == ["0@1", "1@1", "0@2", "1@2"]
        scene.work(2)
        scene.judge()


def test_the_next_attempt_takes_back_what_fails() -> None:
    """All its containers start with the value; the former one is in the record."""
    with World(2, 2, WATCHED) as world:
        scene = Scene(world)
        attempt = scene.working()
        scene.configure("my.bug", "at-work")
        scene.until(lambda: bool(_rolling(attempt)), "it is in force")
        second = scene.attempt(attempt=2, host="am2")
        scene.until(lambda: bool(second.locality()), "the next one works")
        assert _rolling(second)["phase"] == "forward"
        _ends(scene, second, "gone-back")
        assert _value(world, "my.bug") is None
        scene.work(2)
        scene.judge()


@pytest.mark.parametrize(("then", "phase"), [(None, "gone-back"), ("6", "done")])
def test_what_is_written_on_the_way_is_in_force_in_the_end(then: str | None, phase: str) -> None:
    """The former value turns it back; another one begins again, and goes through all."""
    with World(2, 2, WATCHED | {"my.key": "4"}) as world:
        scene = Scene(world)
        attempt = scene.working()
        scene.configure("my.key", "5")
        scene.until_started("0@2")
        scene.configure("my.key", then or "4")
        _ends(scene, attempt, phase)
        assert scene.has_fact("container:started", "0@3")
        assert scene.has_fact("container:started", "1@2") is (then is not None)
        assert _rolling(attempt)["reason"] == ("" if then else REWRITTEN)
        assert _value(world, "my.key") == (then or "4")
        scene.work(2)
        scene.judge()


def test_all_restart_at_once_where_that_is_ordered() -> None:
    """As its tool writes both records in one transaction."""
    with World(2, 2, WATCHED) as world:
        scene = Scene(world)
        attempt = scene.working()
        _at_once(world, "my.key", "5")
        scene.configure("my.key", "5")
        for child in ("0@3", "1@3"):  # the JobModel has overtaken the epochs between
            scene.until(partial(scene.has_fact, "container:started", child), "it starts")
        assert not _rolling(attempt)
        scene.work(2)
        scene.judge()


def test_a_new_run_begins_with_what_was_written() -> None:
    """The record of the run before is void."""
    with World(1, 1, WATCHED) as world:
        scene = Scene(world)
        attempt = scene.working()
        scene.configure("my.key", "5")
        scene.until(lambda: bool(_rolling(attempt)), "it is in force")
        with world.stream() as stream:
            ConfigManager(stream).replace(ConfigManager(stream).read(), SOURCE)
        second = scene.attempt(submission=2)
        scene.until(lambda: bool(second.locality()), "the next run works")
        scene.work(2)
        assert not _rolling(second)
        scene.judge()
