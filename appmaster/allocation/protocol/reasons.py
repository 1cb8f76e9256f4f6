"""Why the allocator decided as it did: reasons of a known kind, each with its sentence.

PURE. A reason names what was decided, for which container, and why. ``homeport explain``,
``/v1/events``, the log and ``/metrics`` all show or count reasons, with the events and instructions
around them; the deciding code itself counts nothing and has no sentences.

Rules for editing: the deciding function gives the reason once, where it decides
(``Draft.because``). A repeated order, as with each check-in, has no reason. A new kind needs its
sentence in ``_SENTENCES``, and a test that brings it about. ``/v1/events`` serves the values of the
kinds: they are never renamed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from homeport.job_coordinator.model.ids import Host, ProcessorId


class ReasonKind(Enum):
    """What was decided."""

    HOME_ASKED = "home-asked"
    OTHER_HOST_ASKED = "other-host-asked"
    ANY_HOST_ASKED = "any-host-asked"
    ASKED_EARLY = "asked-early"
    EARLY_TAKEN_OVER = "early-taken-over"
    EARLY_WITHDRAWN = "early-withdrawn"
    WAITS_FOR_TURN = "waits-for-turn"
    WAITS_FOR_HOME = "waits-for-home"
    REQUEST_EXPIRED = "request-expired"
    REQUEST_WITHDRAWN = "request-withdrawn"
    LAUNCHER_AWAITED = "launcher-awaited"

    OWN_LAUNCHER_CAME = "own-launcher-came"
    LAUNCHER_AT_HOME_CAME = "launcher-at-home-came"
    STRANGE_LAUNCHER_CAME = "strange-launcher-came"
    GIVEN_AWAY = "given-away"
    IDLE_LAUNCHER_TAKEN = "idle-launcher-taken"
    SURPLUS_KEPT = "surplus-kept"
    SURPLUS_RELEASED = "surplus-released"
    CANCELLED_RELEASED = "cancelled-released"
    CUT_OFF_RELEASED = "cut-off-released"
    PACKAGELESS_RELEASED = "packageless-released"

    WAITS_FOR_OWNER = "waits-for-owner"
    PERMITTED = "permitted"
    STARTED = "started"
    ADOPTED = "adopted"
    STRANGER_STOPPED = "stranger-stopped"

    CHARGED = "charged"
    NOT_CHARGED = "not-charged"
    CHARGED_BEFORE = "charged-before"
    SAME_LAUNCHER = "same-launcher"
    BACKS_OFF = "rests"
    BACKED_OFF = "rested"
    GIVEN_UP = "given-up"
    FORGIVEN = "forgiven"
    FINISHED = "finished"
    LAUNCHER_LOST = "launcher-lost"
    END_NOT_PROVEN = "end-not-proven"

    HOST_EXCLUDED = "host-excluded"
    HOST_TO_BE_PROBED = "host-to-be-probed"
    HOST_OPEN = "host-open"
    FAULT_HERE = "fault-here"
    CLUSTER_TOO_SMALL = "cluster-too-small"

    FAILOVER_TO_STANDBY = "failover-to-standby"
    FAILOVER_TO_STANDBY_HOST = "failover-to-standby-host"
    FAILOVER_TO_NOBODY = "failover-to-nobody"
    TASKS_FAIL_OVER = "tasks-fail-over"
    CHOICE_LOST = "choice-lost"
    WAY_IS_CLEAR = "way-is-clear"
    STEPS_ASIDE = "steps-aside"
    FAILOVER_OVER = "failover-over"
    KEPT_APART = "kept-apart"

    ENTERED = "entered"
    OVERTAKEN = "overtaken"
    WORKS_ON = "works-on"
    LETS_GO = "lets-go"
    PREPARES = "prepares"
    RETIRED = "retired"
    TRIED_AGAIN = "tried-again"
    STOPPED_AS_ORDERED = "stopped-as-ordered"
    JOB_ENDS = "job-ends"

    COMMANDED_HOST_ASKED = "commanded-host-asked"
    WARMS_UP = "warms-up"
    WARM_UP_ENDED = "warm-up-ended"
    COMMAND_WAITS = "command-waits"
    COMMAND_GOES_ON = "command-goes-on"
    COMMAND_DONE = "command-done"
    COMMAND_REFUSED = "command-refused"
    COMMAND_FAILED = "command-failed"


_K = ReasonKind

_SENTENCES: Mapping[ReasonKind, str] = MappingProxyType(
    {
        _K.HOME_ASKED: "{Subject} asks for {host}, the host with its state",
        _K.OTHER_HOST_ASKED: "{Subject} asks for {host}, the best other host",
        _K.ANY_HOST_ASKED: "{Subject} asks for any host, as no host is left to ask for by name",
        _K.ASKED_EARLY: (
            "Host {host} is requested early for {subject}: YARN calls its container there ended, "
            "and the evidence that it has stopped is waited for"
        ),
        _K.EARLY_TAKEN_OVER: "{Subject} has stopped, and takes over the early request for {host}",
        _K.EARLY_WITHDRAWN: "{Subject} does not need the early request for {host}",
        _K.WAITS_FOR_TURN: "{Subject} waits for its turn at {host}, which another requests",
        _K.WAITS_FOR_HOME: (
            "{Subject} waits for {host}, its home: each other host has a container of the job"
        ),
        _K.REQUEST_EXPIRED: "{Subject} got no container on {host} in time",
        _K.REQUEST_WITHDRAWN: "{Subject} asks for {host} no more",
        _K.LAUNCHER_AWAITED: "{Subject} was granted a container, whose launcher is to check in",
        _K.OWN_LAUNCHER_CAME: "{Subject} gets the launcher of its own request, on {host}",
        _K.LAUNCHER_AT_HOME_CAME: "{Subject} gets a launcher on {host}, the host with its state",
        _K.STRANGE_LAUNCHER_CAME: "{Subject} gets a launcher on {host} that none there seeks",
        _K.GIVEN_AWAY: "{Subject} requests again: its launcher, on {host}, serves {other}",
        _K.IDLE_LAUNCHER_TAKEN: "{Subject} takes an idle launcher on {host}",
        _K.SURPLUS_KEPT: "A launcher on {host} fits none now, and is kept while one seeks a place",
        _K.SURPLUS_RELEASED: "A launcher on {host} is released, as no container needs it",
        _K.CANCELLED_RELEASED: (
            "A launcher on {host} is released, as it came of a request that was cancelled"
        ),
        _K.CUT_OFF_RELEASED: (
            "A launcher is released, as its host {host} is cut off from Kafka, or from the AM"
        ),
        _K.PACKAGELESS_RELEASED: "A launcher is released, as it cannot have its package on {host}",
        _K.WAITS_FOR_OWNER: (
            "{Subject} is not permitted on {host} until {other}, an owner of its tasks, has stopped"
        ),
        _K.PERMITTED: "{Subject} is permitted to start on {host}",
        _K.STARTED: "{Subject} has started on {host}",
        _K.ADOPTED: "{Subject} was found running on {host}, and runs on",
        _K.STRANGER_STOPPED: "{Subject} was found running on {host}, where it must not run",
        _K.CHARGED: "{Subject} failed, which is charged to its retries",
        _K.NOT_CHARGED: "{Subject} stopped, which is not charged to its retries",
        _K.CHARGED_BEFORE: "What an earlier driver charged to {subject} still counts",
        _K.SAME_LAUNCHER: "{Subject} starts again on its launcher on {host}, which lives",
        _K.BACKS_OFF: "{Subject} backs off before it is placed again",
        _K.BACKED_OFF: "{Subject} has backed off and is placed again",
        _K.GIVEN_UP: "{Subject} is given up, as its retries are used up",
        _K.FORGIVEN: "The failures of {subject} are forgiven",
        _K.FINISHED: "{Subject} has come to its end",
        _K.LAUNCHER_LOST: "{Subject} lost the launcher on {host} that was set aside for it",
        _K.END_NOT_PROVEN: (
            "YARN calls the container of {subject} on {host} ended: it is waited for the evidence "
            "that what ran in it has stopped"
        ),
        _K.HOST_EXCLUDED: "Host {host} is not requested now, as all its launchers fell silent",
        _K.HOST_TO_BE_PROBED: "Host {host} may get one request, as a probe",
        _K.HOST_OPEN: "Host {host} may be requested again",
        _K.FAULT_HERE: (
            "More than half of all hosts fell silent at once, {host} the last: the fault is taken "
            "to be the AM's own, and no host is excluded"
        ),
        _K.FAILOVER_TO_STANDBY: (
            "{Subject} takes the place of its standby, {other}, on {host}, which is to stop first"
        ),
        _K.FAILOVER_TO_STANDBY_HOST: (
            "{Subject} goes to {host}, where its standby, {other}, ran last and does not run now"
        ),
        _K.FAILOVER_TO_NOBODY: ("{Subject} could not be failed to a standby, and goes to any host"),
        _K.TASKS_FAIL_OVER: "{Subject} cannot go home: its tasks go to where their standbys are",
        _K.CHOICE_LOST: "{Subject} cannot take the place of {other} on {host}, and chooses again",
        _K.WAY_IS_CLEAR: "{Other}, whose place {subject} takes on {host}, has stopped",
        _K.STEPS_ASIDE: "{Subject} leaves {host} to {other}",
        _K.KEPT_APART: "{Subject} must not be on {host}, as another of its group is (Invariant-1)",
        _K.FAILOVER_OVER: "The failover of {subject} is over: it has started on {host}",
        _K.CLUSTER_TOO_SMALL: "No host is requested, as none can hold a container",
        _K.ENTERED: "{Subject} is in the JobModel, and is to be placed",
        _K.OVERTAKEN: "{Subject} is to stop, as the JobModel has changed for it",
        _K.WORKS_ON: "{Subject} works on, and waits for {other}",
        _K.LETS_GO: "{Subject} lets go of its tasks on {host}",
        _K.PREPARES: "A process is made ready on {host} for {subject}, whose tasks others work on",
        _K.RETIRED: "{Subject} is not in the JobModel any more",
        _K.TRIED_AGAIN: "{Subject} is placed again, as the JobModel has changed",
        _K.STOPPED_AS_ORDERED: "{Subject} has stopped, as it was ordered to",
        _K.JOB_ENDS: "The job ends",
        _K.COMMANDED_HOST_ASKED: "A launcher is requested on {host}, to which {subject} is to move",
        _K.WARMS_UP: "{Subject} reads the state of {other} on {host}, to which that is to move",
        _K.WARM_UP_ENDED: "{Subject}, which read the state of {other}, has ended",
        _K.COMMAND_WAITS: "A command for {subject} is accepted",
        _K.COMMAND_GOES_ON: "A command for {subject} is carried out",
        _K.COMMAND_DONE: "A command for {subject} is done",
        _K.COMMAND_REFUSED: "A command for {subject} is refused",
        _K.COMMAND_FAILED: "A command for {subject} has failed",
    }
)
"""The sentence of each kind, without its full stop; the detail follows it.

``{subject}``: "processor 0"; ``{Subject}``: the same at the beginning of a sentence; ``{host}``:
its name, or "any host"; ``{other}``: the other processor.
"""


@dataclass(frozen=True, slots=True)
class Reason:
    """One decision and its reason; ``str()`` is its sentence.

    ``processor_id``: the processor of the decision; None: the decision is about a host, a launcher
    or the job. ``other``: a second processor. ``detail``: text for people; no code parses it.
    """

    kind: ReasonKind
    processor_id: ProcessorId | None = None
    host: Host | None = None
    other: ProcessorId | None = None
    detail: str = ""

    def __str__(self) -> str:
        subject, other = _processor(self.processor_id), _processor(self.other)
        sentence = _SENTENCES[self.kind].format(
            Subject=_begun(subject),
            subject=subject,
            host=self.host or "any host",
            Other=_begun(other),
            other=other,
        )
        return f"{sentence}: {self.detail}" if self.detail else sentence


def _begun(name: str) -> str:
    return name[:1].upper() + name[1:]


def _processor(processor_id: ProcessorId | None) -> str:
    return "a container" if processor_id is None else f"processor {processor_id}"
