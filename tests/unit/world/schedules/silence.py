"""Partners of a launcher or a container that fall silent, each for ever: the wait ends by its time.

A silence begins at one request, and has no end: nothing that the container asks there is answered,
or nothing of that kind. ``ends_ms`` is what docs/faults-waits.md names, with the steps of a look.
After that end the partner answers again, and a successor works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from homeport.container.incarnation import coordinators, kafka_watch
from homeport.container.kafka import transactional_producer
from homeport.container.launcher import launcher, stop_reporter
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.silence import Silence
from tests.unit.world.clock import Process
from tests.unit.world.scene import Scene
from tests.unit.world.world import ISOLATION_MS, LEASE_MS, MARGIN_MS, World

CHILD = "0@1"
CUT_OFF_MS = ISOLATION_MS + LEASE_MS + MARGIN_MS + 4_000
"""G + L + M; a look comes each tenth of it and takes 2 s, a request at the end 1 s more."""
AM_MS = 33_000
"""30 s; the last request to the AM takes 2 s."""
ANSWER_MS, SENT_MS, METADATA_MS = 61_000, 31_000, 11_000
_FOR_EVER = 1_000_000_000

Falls = Callable[[Scene, Process, str], None]
Mutant = Callable[[pytest.MonkeyPatch], None]
Play = Callable[[Scene], None]


def kafka(scene: Scene, process: Process, _words: str) -> None:
    """Nothing that it asks of Kafka is answered; others are answered."""
    scene.world.network.cut.add(process.name)


def one_kind(scene: Scene, process: Process, words: str) -> None:
    """No request with these words is answered; the others are."""
    scene.world.network.mute[process.name] = words


def am(scene: Scene, process: Process, _words: str) -> None:
    """Driver and keeper answer nothing that it asks."""
    scene.world.links.isolate(process.name)


@dataclass(frozen=True)
class Wait:
    """A container stands at the request with these words when ``falls`` silences its partner.

    ``during``: ``start``, ``work`` or ``stop``. ``removed`` takes the time away that ends the wait;
    None: another wait of the kind has it.
    """

    words: str
    falls: Falls
    ends_ms: int
    during: str = "start"
    removed: Mutant | None = None

    def __str__(self) -> str:
        return f"{self.falls.__name__}-{self.during}-{self.words}"

    def play(self, mutant: Mutant | None = None) -> None:
        """Until the end, and with a successor at work.

        Raises:
            UnsafeError: it has no end.
        """
        with World() as world:
            if mutant is not None:
                mutant(world.patch)
            scene = Scene(world)
            child = self._at_request(scene)
            self.falls(scene, child, self.words)
            child.go_on()
            scene.until(lambda: not child.is_alive, "the wait has ended", self.ends_ms)
            world.network.cut.clear()
            world.network.mute.clear()
            world.links.mend()
            if self.during == "stop":
                return
            scene.until(lambda: scene.started() == 1, "a successor has started")
            scene.work()
            scene.require(not scene.has_fact("finished"), "the end was charged")
            scene.judge()

    def _at_request(self, scene: Scene) -> Process:
        if self.during == "start":
            scene.hosts.on_start = lambda p: _stop_first(p, self.words)
            scene.attempt()
            child = scene.child(CHILD)
            scene.until(lambda: child.is_stopped, f"it is at {self.words}")
        else:
            scene.working()
            child = scene.hosts.child(CHILD)
            scene.halt(child, self.words, 1)
        if self.during == "stop":
            scene.hosts.launcher_of(child).terminate()
        return child


def _stop_first(process: Process, words: str) -> None:
    if process.name.startswith(f"{CHILD} "):
        process.stop_at(words)


def no_watch(patch: pytest.MonkeyPatch) -> None:
    """A container does not look whether Kafka answers its host."""
    patch.setattr(kafka_watch, "silence_of", lambda _job: Silence(_FOR_EVER))


def init_for_ever(patch: pytest.MonkeyPatch) -> None:
    """The init of an id has no time limit."""
    patch.setattr(transactional_producer, "_INIT_S", _FOR_EVER)


def commit_for_ever(patch: pytest.MonkeyPatch) -> None:
    """The end of a transaction has no time limit."""
    patch.setattr(transactional_producer, "_COMMIT_S", _FOR_EVER)


def am_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A container that starts asks the AM again and again."""
    patch.setattr(coordinators, "_AM_PATIENCE_S", _FOR_EVER)


COORDINATOR, CHECKPOINTS = "__samza_coordinator", "__samza_checkpoint"
WAITS = (
    Wait("v1/processors", am, AM_MS, removed=am_for_ever),
    Wait("v1/started", am, AM_MS),
    Wait("init homeport", kafka, CUT_OFF_MS),
    Wait(f"ask the end of {COORDINATOR}", kafka, CUT_OFF_MS),
    Wait(f"fetch {COORDINATOR}", kafka, CUT_OFF_MS),
    Wait("describe in", kafka, CUT_OFF_MS),
    Wait("ask the end of counts", kafka, CUT_OFF_MS),
    Wait(f"ask the end of {CHECKPOINTS}", kafka, CUT_OFF_MS),
    Wait(f"send to {CHECKPOINTS}", kafka, CUT_OFF_MS),
    Wait(f"send to {COORDINATOR}", kafka, CUT_OFF_MS),
    Wait("init homeport", one_kind, ANSWER_MS, removed=init_for_ever),
    Wait(f"ask the end of {COORDINATOR}", one_kind, SENT_MS),
    Wait("describe in", one_kind, METADATA_MS),
    Wait("ask the end of counts", one_kind, ANSWER_MS),
    Wait(f"send to {COORDINATOR}", one_kind, SENT_MS),
    Wait("fetch in", kafka, CUT_OFF_MS, "work", no_watch),
    Wait("send to out", kafka, CUT_OFF_MS, "work"),
    Wait("commit", kafka, CUT_OFF_MS, "work"),
    Wait("send to out", one_kind, SENT_MS, "work"),
    Wait("commit", one_kind, SENT_MS, "work", commit_for_ever),
    Wait("commit", kafka, CUT_OFF_MS, "stop"),
)


# --- a launcher


def a_launcher_without_the_am(scene: Scene) -> None:
    """It has a child: that ends with its lease, and the launcher goes G + L + M later.

    The NodeManager of its host is down: YARN does not end it.
    """
    scene.working()
    scene.cluster.hosts[Host("a")] = False
    child = scene.hosts.child(CHILD)
    parent = scene.hosts.launcher_of(child)
    am(scene, parent, "")
    scene.until(lambda: not child.is_alive, "its child has ended", LEASE_MS + MARGIN_MS)
    scene.until(lambda: not parent.is_alive, "it has gone", CUT_OFF_MS)
    scene.work()
    scene.judge()


def stays_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A launcher that the AM does not answer stays."""
    patch.setattr(launcher.Launcher, "_is_forsaken", lambda _: False)


def a_stop_that_the_am_does_not_take(scene: Scene) -> None:
    """It is being written to Kafka after 2 s, and two requests of 3 s; YARN does not end it."""
    scene.working()
    scene.cluster.hosts[Host("a")] = False
    child = scene.hosts.child(CHILD)
    am(scene, scene.hosts.launcher_of(child), "")
    child.kill()
    scene.until(lambda: bool(scene.hosts.witnesses), "its stop is recorded", 2_000 + 7_000)
    scene.world.links.mend()
    scene.work()
    scene.judge()


def reports_to_the_am_alone(patch: pytest.MonkeyPatch) -> None:
    """A stop waits for the AM."""
    patch.setattr(stop_reporter.StopReporter, "is_unanswered", lambda *_: None)


# --- a former owner


def a_former_owner_that_never_reports_its_stop(scene: Scene) -> None:
    """Host and all stand still; its tasks go on elsewhere once its lease is over, L + M."""
    scene.attempt()
    scene.until(lambda: scene.started() == 2, "both have started")
    owner = scene.hosts.child("1@1")
    scene.hosts.freeze(owner.host)
    scene.configure("job.container.count", "1")
    scene.until(
        lambda: any(
            str(f.who).startswith("0@") and str(f.who) != CHILD
            for f in scene.world.facts_of("container:started")
        ),
        "its tasks have started elsewhere",
        LEASE_MS + MARGIN_MS + 10_000,
    )
    scene.judge()
