"""Launchers of a simulated cluster, and the post between them and the AM.

A launcher polls, runs one child at a time and one child per epoch (safety C4), and repeats what it
has to report until that is answered. It has one poll under way, whose answer it awaits for a tenth
of a lease; one that comes later is not heeded. Without any answer for a lease, counted from when
the letter was sent (C1), its child ends. Letters and answers may be late, lost, twice and out of
order, as the cluster's ``Faults`` say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeport.container.host.exit_codes import EXIT_LEASE_LOST
from homeport.job_coordinator.http.messages import CheckIn, Order, OrderKind, Started, Stopped
from homeport.job_coordinator.model.ids import Host, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

if TYPE_CHECKING:
    from simulated_cluster import SimulatedCluster

    from homeport.job_coordinator.http.server import JobCoordinatorBackend

Message = CheckIn | Started | Stopped

Answer = Order | None
"""To a check-in an order, or None where the AM had none; to a report None: it is taken."""

_ORDERED_EXIT = 143
_FIRST_PID = 1000
_TICK_MS = 10


@dataclass(frozen=True)
class Letter:
    """A message of one launcher that has arrived at the AM."""

    number: int
    sender: ResourceId
    sent_ms: int
    message: Message


class Post:
    """Carries letters to the AM and answers back."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self._arrived: list[Letter] = []
        self._senders: dict[int, Launcher] = {}
        self._number = 0

    def send(self, sender: Launcher, message: Message) -> int:
        """The letter is under way, if it is not lost; its number."""
        self._number += 1
        letter = Letter(self._number, sender.resource_id, self.cluster.now_ms, message)
        self._senders[letter.number] = sender
        for _ in range(self._copies()):
            self._later(sender.host, lambda: self._arrived.append(letter))
        return letter.number

    def arrived(self) -> tuple[Letter, ...]:
        """What has arrived since the last call."""
        found, self._arrived = tuple(self._arrived), []
        return found

    def answered(self, letter: Letter, answer: Answer) -> None:
        """The answer is under way, if it is not lost."""
        sender = self._senders[letter.number]
        for _ in range(self._copies()):
            self._later(sender.host, lambda: sender.hear(letter, answer))

    def _copies(self) -> int:
        faults, chance = self.cluster.faults, self.cluster.random.random()
        if chance < faults.lost:
            return 0
        return 2 if chance < faults.lost + faults.doubled else 1

    def _later(self, host: Host, happen: Callable[[], None]) -> None:
        self.cluster.after(self.cluster.span(self.cluster.faults.letter_ms, host), happen)


class Launcher:
    """One launcher; it polls from the moment it is made."""

    def __init__(
        self,
        post: Post,
        resource_id: ResourceId,
        skein_id: str,
        host: Host,
        exited: Callable[[], None],
    ) -> None:
        self.resource_id = resource_id
        self.host = host
        self.is_alive = True
        self.running: Incarnation | None = None
        self._post, self._cluster = post, post.cluster
        self._skein_id = skein_id
        self._exited = exited
        self._ended: set[Incarnation] = set()
        self._reports: list[Started | Stopped] = []
        self._is_stopping = False
        self._poll_out: int | None = None
        self._polled_ms = 0
        self._still_until_ms = 0
        self._lease_from_ms = self._cluster.now_ms
        self._poll()

    def die(self) -> None:
        """It is gone, and its child too."""
        self.is_alive = False
        self.running = None

    def kill(self) -> None:
        """Its NodeManager ends it; where it stands still, so does that: when it moves again."""
        if self.is_still:
            self._cluster.after(self._still_until_ms - self._cluster.now_ms, self.kill)
        else:
            self.die()

    def stand_still(self, until_ms: int) -> None:
        """Nothing happens here until then; what is sent here meanwhile is lost."""
        self._still_until_ms = until_ms

    def child_ends(self, cause: StopCause = StopCause.FAILED, exit_code: int = 1) -> None:
        """The child, if there is one, ends by itself; by default it fails."""
        if self.running is not None:
            self._ended.add(self.running)
            self._report(Stopped(self.running, cause, exit_code))
            self.running, self._is_stopping = None, False

    def hear(self, letter: Letter, answer: Answer) -> None:
        """The answer to a letter of its own has come."""
        if not self.is_alive or self.is_still:
            return
        self._lease_from_ms = max(self._lease_from_ms, letter.sent_ms)
        if not isinstance(letter.message, CheckIn):
            self._reports = [r for r in self._reports if r != letter.message]
        elif letter.number == self._poll_out:
            self._poll_out = None
            if answer is not None:
                self._obey(answer)

    @property
    def is_still(self) -> bool:
        """Whether its machine stands still."""
        return self._cluster.now_ms < self._still_until_ms

    def _poll(self) -> None:
        if not self.is_alive:
            return
        self._cluster.after(self._cluster.check_in_ms, self._poll)
        if self.is_still:
            return
        if self._cluster.now_ms - self._lease_from_ms >= self._cluster.lease_ms:
            self.child_ends(StopCause.LEASE_LOST, EXIT_LEASE_LOST)
        for report in self._reports:
            self._post.send(self, report)
        is_patient = self._cluster.now_ms - self._polled_ms < self._cluster.lease_ms // 10
        is_waiting = self._poll_out is not None and is_patient
        if not is_waiting and not any(isinstance(r, Stopped) for r in self._reports):
            pid = 0 if self.running is None else _FIRST_PID + self.running.epoch
            poll = CheckIn(self.resource_id, self._skein_id, 1, self.host, pid, self.running)
            self._poll_out, self._polled_ms = self._post.send(self, poll), self._cluster.now_ms

    def _obey(self, order: Order) -> None:
        incarnation = order.incarnation
        if order.kind is OrderKind.EXIT and self.running is None:
            self.die()
            self._exited()
        elif incarnation is None or order.kind not in {OrderKind.RUN, OrderKind.STOP}:
            return
        elif order.kind is OrderKind.RUN and self.running is None:
            self._start(incarnation)
        elif order.kind is OrderKind.STOP and self.running == incarnation:
            self._stop(incarnation)
        elif order.kind is OrderKind.STOP:
            self._never_run(incarnation)

    def _start(self, incarnation: Incarnation) -> None:
        if incarnation in self._ended:
            self._never_run(incarnation)
            return
        self.running = incarnation
        self._later(self._cluster.faults.restore_ms, lambda: self._restored(incarnation))

    def _restored(self, incarnation: Incarnation) -> None:
        if self.running == incarnation and not self._is_stopping:
            self._report(Started(incarnation))

    def _stop(self, incarnation: Incarnation) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._later(self._cluster.faults.stop_ms, lambda: self._stopped(incarnation))

    def _stopped(self, incarnation: Incarnation) -> None:
        if self.running == incarnation:
            self.child_ends(StopCause.ORDERED, _ORDERED_EXIT)

    def _never_run(self, incarnation: Incarnation) -> None:
        self._ended.add(incarnation)
        self._report(Stopped(incarnation, StopCause.ORDERED, 0))

    def _report(self, report: Started | Stopped) -> None:
        if report not in self._reports:
            self._reports.append(report)
            self._post.send(self, report)

    def _later(self, bounds: tuple[int, int], happen: Callable[[], None]) -> None:
        """``happen``, if it is alive then; where it stands still, when it moves again."""

        def due() -> None:
            if self.is_still:
                self._cluster.after(self._still_until_ms - self._cluster.now_ms, due)
            elif self.is_alive:
                happen()

        self._cluster.after(self._cluster.span(bounds, self.host), due)


async def attend(cluster: SimulatedCluster, backend: JobCoordinatorBackend) -> None:
    """For ever: the cluster's clock goes as fast as ours, and its launchers speak to this AM."""
    while True:
        await asyncio.sleep(_TICK_MS / 1000)
        cluster.advance(_TICK_MS)
        for letter in cluster.letters():
            answer: Answer = None
            match letter.message:
                case CheckIn() as check_in:
                    answer = await backend.check_in(check_in)
                case Started() as started:
                    await backend.started(started)
                case Stopped() as stopped:
                    await backend.stopped(stopped)
            cluster.answer(letter, answer)
