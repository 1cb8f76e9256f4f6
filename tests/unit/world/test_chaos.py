"""Random schedules with every rule on: safe at any time, and exact when calm returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType

import pytest
from suites import long

from homeport.appmaster.allocation.protocol.observation import SkeinContainerState
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementRequest,
)
from tests.unit.world.am import Attempt
from tests.unit.world.clock import Process
from tests.unit.world.judges import counted
from tests.unit.world.scene import Scene
from tests.unit.world.standbys import HOT_STANDBY, install, judge_places, watch_places
from tests.unit.world.world import LEASE_MS, World

_ENDED = SkeinContainerState.ENDED
_SIGKILL_AFTER_MS = 250
_MOVE = "move "
_CHANGES = 10
"""A third of the faults, where people write keys."""
_ANYWHERE = (ANY_HOST, LAST_SEEN, FORCE_RESTART_LAST_SEEN)
CALM_MS = 120_000


class Chaos:
    """Faults in one scene, drawn from ``seed``. The job has one or two containers and two tasks.

    ``attempt``: the newest. ``keys`` {key that only a start reads: values that people write}.
    """

    def __init__(
        self, scene: Scene, seed: int, keys: Mapping[str, Sequence[str]] = MappingProxyType({})
    ) -> None:
        self._scene = scene
        self._random = Random(seed)  # noqa: S311 - no secret
        self.attempt: Attempt = scene.attempt()
        self._faults: list[Callable[[], None]] = [
            self._kill_child,
            self._kill_launcher,
            self._stop_child,
            self._stop_launcher,
            self._stop_host,
            self._isolate_host,
            self._lose_host,
            self._preempt,
            self._calls_fail,
            self._cut_host_from_kafka,
            self._cut_am_from_hosts,
            self._broker_is_away,
            self._slow_markers,
            self._kill_driver,
            self._stop_driver,
            self._kill_keeper,
            self._stop_keeper,
            self._am_dies,
            self._am_is_orphaned,
            self._people_rescale,
            self._people_move,
            *[self._people_configure] * (_CHANGES if keys else 0),
        ]
        self._keys = keys
        self._moves = 0

    def suffer(self, faults: int) -> None:
        """So many faults have hit a working job, one by one or over one another."""
        scene = self._scene
        for _ in range(faults):
            scene.run(self._random.choice([50, 300, 1000, 3000, 6000]))
            for partition in range(scene.world.partitions):
                scene.produce(2, b"k%d" % partition, partition)
            fault = self._random.choice(self._faults)
            scene.clock.announce(f"=== {fault.__name__[1:]}")
            fault()
            scene.judge()

    def calm_down(self) -> None:
        """Everything works again, all that was produced is counted, and the judges are content."""
        scene = self._scene
        scene.clock.announce("=== calm")
        scene.world.network.cut.clear()
        scene.world.links.mend()
        scene.world.broker.is_up = True
        scene.world.broker.marker_delay_ms = 1
        for host in scene.cluster.hosts:
            scene.cluster.nodes.start(host)
        self.attempt.yarn.faults.clear()
        for process in scene.clock.processes:
            process.go_on()
        all_counted = "all that was produced is counted"
        scene.until(lambda: counted(scene.world) >= scene.produced, all_counted, CALM_MS)
        scene.run(2 * LEASE_MS)
        scene.until(self._has_rolled, "the rolling restart has ended", CALM_MS)
        with scene.world.stream() as stream:
            answers = PlacementManager(stream).read_responses()
        scene.until(self._is_tidy, "no launcher is left over", CALM_MS)
        own = (answer for uuid, answer in answers.items() if uuid.startswith(_MOVE))
        open_ones = self._moves - sum(answer.status.is_final for answer in own)
        scene.require(open_ones == 0, f"{open_ones} of {self._moves} moves have no final answer")
        scene.judge()

    def _has_rolled(self) -> bool:
        rolling = self.attempt.status()["rolling_restart"]
        return rolling is None or rolling["phase"] in {"done", "gone-back"}

    def _is_tidy(self) -> bool:
        """Whether the attempt has a container of YARN for each of its own, and no other."""
        left = [c for c in self.attempt.yarn.everything() if c.state is not _ENDED]
        return len(left) == len(self.attempt.status()["containers"])

    # -- containers and hosts

    def _one(self, among: list[Process]) -> Process | None:
        alive = [p for p in among if p.is_alive]
        return self._random.choice(alive) if alive else None

    def _later(self, action: Callable[[], None]) -> None:
        self._scene.clock.at(self._random.choice([200, 1000, 2500, 5000, 9000]), action)

    def _kill_child(self) -> None:
        if process := self._one(self._scene.hosts.children):
            process.kill()

    def _kill_launcher(self) -> None:
        if process := self._one(self._scene.hosts.launchers):
            process.kill()

    def _stop_child(self) -> None:
        self._stop(self._one(self._scene.hosts.children))

    def _stop_launcher(self) -> None:
        self._stop(self._one(self._scene.hosts.launchers))

    def _stop(self, process: Process | None) -> None:
        if process is not None:
            process.stop()
            self._later(process.go_on)

    def _host(self) -> str:
        return str(self._random.choice(sorted(self._scene.cluster.hosts)))

    def _stop_host(self) -> None:
        for process in self._scene.hosts.of(self._host()):
            process.stop()
            self._later(process.go_on)

    def _isolate_host(self) -> None:
        links, host = self._scene.world.links, self._host()
        links.isolate(host)
        self._later(lambda: links.cut.difference_update({(host, "*"), ("*", host)}))

    def _lose_host(self) -> None:
        """The machine is switched off; it comes back later, empty but for its disk."""
        hosts, host = self._scene.cluster.hosts, Host(self._host())
        self._scene.cluster.lose_node_manager(host)
        for process in self._scene.hosts.of(host):
            process.kill()
        self._later(lambda: hosts.update({host: True}))

    def _preempt(self) -> None:
        """YARN takes a container back and gives its room to another application."""
        yarn = self.attempt.yarn
        numbers = [n for n, c in yarn.containers.items() if c.process and c.process.is_alive]
        if numbers:
            yarn.end(self._random.choice(numbers))

    def _calls_fail(self) -> None:
        """The next calls to YARN fail, some of them after they have taken effect."""
        count = self._random.randint(1, 8)
        self.attempt.yarn.faults.extend(self._random.random() < 0.5 for _ in range(count))

    def _cut_host_from_kafka(self) -> None:
        cut, host = self._scene.world.network.cut, self._host()
        cut.add(host)
        self._later(lambda: cut.discard(host))

    def _cut_am_from_hosts(self) -> None:
        links, am, host = self._scene.world.links, self.attempt.host, self._host()
        pair = self._random.choice([(host, am), (am, host)])
        links.cut.add(pair)
        self._later(lambda: links.cut.discard(pair))

    # -- Kafka

    def _broker_is_away(self) -> None:
        broker = self._scene.world.broker
        broker.is_up = False

        def comes_back() -> None:
            broker.is_up = True

        self._later(comes_back)

    def _slow_markers(self) -> None:
        self._scene.world.broker.marker_delay_ms = self._random.choice([1, 20, 300])

    # -- the AM

    def _kill_driver(self) -> None:
        if process := self.attempt.children[1].process:
            process.kill()

    def _stop_driver(self) -> None:
        self._stop(self.attempt.children[1].process)

    def _kill_keeper(self) -> None:
        if process := self.attempt.children[0].process:
            process.kill()

    def _stop_keeper(self) -> None:
        self._stop(self.attempt.children[0].process)

    def _am_dies(self) -> None:
        """YARN ends the containers of the attempt, as it does, and begins the next one."""
        self.attempt.supervisor.kill()
        for container in self.attempt.yarn.containers.values():
            if process := container.process:
                process.terminate()
                self._scene.clock.at(_SIGKILL_AFTER_MS, process.kill)
        self._next_attempt()

    def _am_is_orphaned(self) -> None:
        """The AM's NodeManager dies: the AM lives on, and YARN begins the next attempt."""
        self._next_attempt()

    def _people_rescale(self) -> None:
        """An operator changes the number of containers; perhaps to what it is."""
        self._scene.configure("job.container.count", self._random.choice("12"))

    def _people_configure(self) -> None:
        """An operator writes a key that restarts one container after the other."""
        key = self._random.choice(sorted(self._keys))
        self._scene.configure(key, self._random.choice(self._keys[key]))

    def _people_move(self) -> None:
        """An operator moves or restarts a container; perhaps one that does not exist."""
        self._moves += 1
        request = PlacementRequest(
            f"{_MOVE}{self._moves}",
            self.attempt.rank.application,
            ProcessorId(self._random.choice(["0", "0-0", "1", "1-0"])),
            self._random.choice([*self._scene.cluster.hosts, *_ANYWHERE]),
            None,
            self._scene.clock.now_ms,
        )
        self._scene.world.write(PlacementManager.request_message(request), "an operator")

    def _next_attempt(self) -> None:
        number = self.attempt.rank.attempt + 1
        self.attempt = self._scene.attempt(attempt=number, host=f"am{number}")


_SEEDS = (0, pytest.param(1, marks=pytest.mark.search), *map(long, range(2, 6)))


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_random_schedule_is_safe_and_heals(seed: int) -> None:
    """Eight faults, then calm: no judge finds anything, and every record was counted once."""
    with World(containers=2, partitions=2) as world:
        chaos = Chaos(Scene(world), seed)
        chaos.suffer(8)
        chaos.calm_down()


@pytest.mark.search
@pytest.mark.parametrize("seed", [0, 1, *map(long, range(2, 8))])
def test_a_random_schedule_with_hot_standby_is_safe_and_heals(seed: int) -> None:
    """Besides, no active was ever started beside its standby, and in the end both roles run."""
    containers = 1 + seed % 2
    with World(containers, 2, HOT_STANDBY) as world:
        install(world)
        scene = Scene(world)
        watch_places(scene, {"0-0": "0", "1-0": "1"})
        chaos = Chaos(scene, seed)
        scene.until(lambda: scene.started() == 2 * containers, "all have started")
        chaos.suffer(8)
        chaos.calm_down()
        scene.until(
            lambda: chaos.attempt.status()["job"]["health"] == "deployed", "all run", CALM_MS
        )
        judge_places(scene)


@pytest.mark.parametrize("seed", [1, pytest.param(3, marks=pytest.mark.search), *map(long, (0, 2))])
def test_a_random_schedule_with_rolling_restarts_is_safe_and_heals(seed: int) -> None:
    """People write values amid all faults; some values make each start or each record fail."""
    keys = {"my.key": "123", "my.bug": ("at-start", "at-work", "mended")}
    with World(2, 2, {"cluster-manager.rolling-restart.watch.ms": "2000"}) as world:
        chaos = Chaos(Scene(world), seed, keys)
        chaos.suffer(8)
        chaos.calm_down()


def test_the_same_seed_is_the_same_story() -> None:
    """Every line, to the millisecond; another seed is another story."""

    def story(seed: int) -> list[str]:
        with World() as world:
            Chaos(Scene(world), seed).suffer(2)
        return world.clock.story

    first = story(1)
    assert first == story(1)
    assert first != story(2)
