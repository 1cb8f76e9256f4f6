"""ProcessorPage: what a standalone processor serves by HTTP: itself and, if it leads, the job.

The coordination's thread notes its decisions; the server's thread reads them. From ZooKeeper the
leader knows the processors and what the newest version gives them. At a request for the status it
asks each of them for its state.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from msgspec.structs import replace
from prometheus_client.core import Metric

from homeport.config.config import Config
from homeport.config.errors import HomeportError, WireError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.http.metrics import family
from homeport.job_coordinator.http.query_params import EventsAsked
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.wire_form import decoded
from homeport.job_coordinator.standalone.plan import Registration
from homeport.job_coordinator.standalone.protocol import Event
from homeport.job_coordinator.standalone.standby_view import after, standbys_shown
from homeport.job_coordinator.standalone.state import ProcessorDecision, ProcessorState, WorkPhase
from homeport.job_coordinator.standalone.waits import change, waits
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import (
    Phase,
    ShownConfiguration,
    ShownContainer,
    ShownJob,
    ShownStatus,
    ShownTakenOver,
)

APPLICATION = "standalone"
"""Stands where a job on YARN has its application."""
_EVENTS_KEPT = 1000
_MODELS_KEPT = 3
_ASK_S = 2.0
_STILL_MS = 10_000
"""A coordination whose loop has not turned for so long stands still."""


@dataclass(frozen=True, slots=True)
class Served:
    """The fixed facts of the processor; ``coordinator``: the job's."""

    config: Config
    coordinator: str
    processor_id: ProcessorId
    location: Host


class ProcessorPage:
    """Implements ``JobCoordinatorBackend``, ``DecisionSource`` and ``Peers`` of one processor.

    ``model_of``: returns the JobModel of a version that was seen. ``report``: returns the
    container's last report; None: there is none. ``topics_refused``: returns why topics that match
    are no inputs; of a leader.
    """

    def __init__(
        self,
        served: Served,
        model_of: Callable[[int], JobModel],
        report: Callable[[], ContainerReport | None],
    ) -> None:
        self._served = served
        self._model_of = model_of
        self._report = report
        self._lock = threading.RLock()
        self._state = ProcessorState(served.processor_id, served.location)
        self._since_ms = self._began_ms = wall_ms()
        self._turned_ms = boot_ms()
        self._events: deque[dict[str, Any]] = deque(maxlen=_EVENTS_KEPT)
        self._number = 0
        self._models: dict[int, JobModel] = {}
        self._others: dict[ProcessorId, ShownContainer] = {}
        self._taken_over = ShownTakenOver()
        self.topics_refused: Callable[[], tuple[str, ...]] = tuple

    def decided(self, event: Event, decision: ProcessorDecision) -> None:
        """Note a step; the coordination's thread calls it."""
        said = decision.reasons or decision.records or decision.instructions
        with self._lock:
            if _phase(decision.state) != _phase(self._state):
                self._since_ms = wall_ms()
            before, self._state = self._state, decision.state
            plan = self._state.plan
            if plan is not None and plan.version > before.version and self._state.is_leader:
                lost, unbacked = plan.lost, plan.unbacked
                self._taken_over = after(self._taken_over, lost, unbacked, plan.version)
            if said:
                self._number += 1
                self._events.append(_shown(self._number, self._served, event, decision))

    def turned(self) -> None:
        """Note that the loop of the coordination's thread turns."""
        self._turned_ms = boot_ms()

    # --- the job

    def job_model(self, version: int | None) -> JobModel | None:
        """Return a recent version, or the newest; None: there is none."""
        with self._lock:
            number = self._state.version if version is None else version
            known = self._models.get(number)
            if known is not None or number < 1:
                return known
            try:
                found = self._model_of(number)
            except (KeyError, HomeportError):
                return None
            # The same object each time: callers cache what they make of it, by its identity.
            self._models[number] = JobModel(self._served.config, found.containers)
            while len(self._models) > _MODELS_KEPT:
                del self._models[next(iter(self._models))]
            return self._models[number]

    def led(self) -> JobModel | None:
        """Return the newest JobModel if this processor leads; else None."""
        return self.job_model(None) if self._now().is_leader else None

    def locality(self) -> Mapping[ProcessorId, Host]:
        """Return {processor: location} of those that are registered."""
        return {r.processor_id: r.location for r in self._now().registrations}

    def status(self) -> ShownStatus:
        """Return the job as its leader sees it, with the last answers of the others."""
        state = self._now()
        own = self._container(state)
        known = {**self._others, own.processor_id: own}
        containers = (known.get(r.processor_id, _from_plan(state, r)) for r in state.registrations)
        pairs = zip(containers, state.registrations, strict=True)
        return self._of_job(state, [replace(c, location=r.location) for c, r in pairs])

    # --- itself, and where others are

    def own_status(self) -> ShownStatus:
        """Return this processor alone, in the same form."""
        state = self._now()
        return self._of_job(state, [self._container(state)])

    def leader_url(self) -> str | None:
        """Return the leader's URL; empty: it is this processor; None: it is not known now."""
        state = self._now()
        if state.is_leader:
            return ""
        first = state.registrations[0] if state.registrations else None
        if first is None or first.sequence == state.sequence or not state.is_connected:
            return None
        return first.url or None

    def url_of(self, processor_id: ProcessorId) -> str | None:
        """Return that processor's URL; empty: it is this one; None: it is not known."""
        if processor_id == self._served.processor_id:
            return ""
        for registration in self._now().registrations:
            if registration.processor_id == processor_id:
                return registration.url or None
        return None

    async def gather(self) -> None:
        """Ask each other processor for its state; wait 2 s for the answers."""
        state = self._now()
        asked = {
            r.processor_id: r.url
            for r in state.registrations
            if r.sequence != state.sequence and r.url
        }
        timeout = aiohttp.ClientTimeout(total=_ASK_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            found = await asyncio.gather(*(_asked(session, url) for url in asked.values()))
        answers = zip(asked, found, strict=True)
        self._others = {p: shown for p, shown in answers if shown is not None}

    # --- decisions

    def events(self, asked: EventsAsked) -> bytes:
        """Return the last steps of this processor that decided something, by number."""
        with self._lock:
            kept = list(self._events)
        found = [e for e in kept if asked.since is None or e["number"] > asked.since]
        shown = found[-asked.limit :] if asked.since is None else found[: asked.limit]
        return compact_json(
            {
                "version": 1,
                "since_ms": self._began_ms,
                "first": kept[0]["number"] if kept else 0,
                "last": kept[-1]["number"] if kept else 0,
                "more": len(shown) < len(found),
                "events": shown,
            }
        )

    async def what_if(self, hosts: Collection[Host]) -> ShownOutlook:
        """Raise WireError: the user places processors."""
        del hosts
        raise WireError("what-if has no meaning for a standalone job: its user places processors")

    async def written(self) -> None:
        """Return None: each processor reads its own file."""

    def metrics(self) -> Iterable[Metric]:
        """Return the counts of tasks that lost their processor while this one led."""
        with self._lock:
            return leader_metrics(self._taken_over)

    # --- inside

    def _now(self) -> ProcessorState:
        with self._lock:
            return self._state

    def _of_job(self, state: ProcessorState, containers: Sequence[ShownContainer]) -> ShownStatus:
        job = JobConfig.of(self._served.config)
        first = state.registrations[0] if state.registrations else None
        is_deployed = all(c.phase in {Phase.RUNNING, Phase.WAITING} for c in containers)
        return ShownStatus(
            job=ShownJob(
                name=job.name,
                id=job.id,
                application=APPLICATION,
                coordinator=self._served.coordinator,
                leader=first.processor_id if first else None,
                state=state.life.value,
                health="deployed" if containers and is_deployed else "deploying",
                model_version=state.version or None,
            ),
            containers=tuple(containers),
            hosts=tuple(sorted({r.location for r in state.registrations})),
            change=change(state),
            taken_over=self._taken_over,
            configuration=self._configuration(state),
        )

    def _configuration(self, state: ProcessorState) -> ShownConfiguration | None:
        refused = self.topics_refused() if state.is_leader else ()
        version = state.version or 0
        return ShownConfiguration(version=version, topics_refused=refused) if refused else None

    def _container(self, state: ProcessorState) -> ShownContainer:
        report, work = self._report(), state.work
        is_live = work.is_live
        return ShownContainer(
            processor_id=self._served.processor_id,
            host=self._served.location,
            location=self._served.location,
            phase=_phase(state),
            since_ms=self._since_ms,
            epoch=work.generation,
            model_version=state.version if is_live else None,
            is_leader=state.is_leader,
            registration=state.sequence,
            report=report,
            standbys=standbys_shown(work.standbys, report),
            waits=(*self._still(), *waits(state)),
        )

    def _still(self) -> Iterator[str]:
        still_ms = boot_ms() - self._turned_ms
        if still_ms >= _STILL_MS:
            yield f"for its own coordination, still for {still_ms} ms: stop the process"


def leader_metrics(counts: ShownTakenOver) -> tuple[Metric, ...]:
    """Return the metrics of the leader of a job with standbys."""
    lost = "Tasks that lost their processor while this one led, of a job with standbys."
    unbacked = "Those of them that could not be started where a standby of theirs was."
    return (
        family("homeport_tasks_lost", lost, [((), counts.lost)], grows=True),
        family("homeport_tasks_unbacked", unbacked, [((), counts.unbacked)], grows=True),
    )


async def _asked(session: aiohttp.ClientSession, url: str) -> ShownContainer | None:
    try:
        async with session.get(url.rstrip("/") + "/v1/processor") as answer:
            found = decoded(ShownStatus, await answer.read(), "the status")
        return found.containers[0]
    except (aiohttp.ClientError, TimeoutError, WireError, LookupError):
        return None


def _from_plan(state: ProcessorState, registration: Registration) -> ShownContainer:
    entry = None if state.plan is None else state.plan.of(registration.sequence)
    return ShownContainer(
        processor_id=registration.processor_id,
        host=registration.location,
        phase=Phase.UNKNOWN,
        epoch=entry.generation if entry else 0,
        model_version=state.version if entry else None,
        registration=registration.sequence,
        standbys=standbys_shown(entry.standbys if entry else (), None),
        waits=("for an answer: it does not answer the leader",),
    )


def _phase(state: ProcessorState) -> Phase:
    """Return the phase of its work; ``WAITING``: it has no task, or may not begin yet."""
    idle = state.work.phase is WorkPhase.IDLE
    return Phase.WAITING if idle else Phase(state.work.phase.value)


_WORDS: Final = {
    "ProcessorTimerFired": "TimerFired",
    "WriteLocations": "WriteLocality",
    "StartTimer": "SetTimer",
    "StopTimer": "CancelTimer",
}
"""Names in ``/v1/events`` that differ from those of the classes: scripts know them from YARN."""


def _word(thing: object) -> str:
    name = type(thing).__name__
    return _WORDS.get(name, name)


def _shown(
    number: int, served: Served, event: Event, decision: ProcessorDecision
) -> dict[str, Any]:
    return {
        "number": number,
        "at_ms": wall_ms(),
        "cause": _word(event),
        "reasons": [
            {
                "kind": reason.kind.value,
                "processor_id": str(served.processor_id),
                "sentence": str(reason),
            }
            for reason in decision.reasons
        ],
        "records": [*map(_word, decision.records)],
        "instructions": [*map(_word, decision.instructions)],
        "left_out": 0,
    }
