"""Why a processor's machine decided what it decided, each kind with its sentence.

PURE. Rules for editing: as for the allocator's. The values of kinds are never renamed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class ProcessorReasonKind(Enum):
    """What was decided."""

    REGISTERS = "registers"
    LEADS = "leads"
    LEADS_NO_MORE = "leads-no-more"
    WAITS_FOR_TWIN = "waits-for-twin"
    TWIN_STAYS = "twin-stays"
    REBALANCE_DUE = "rebalance-due"
    COMPUTES = "computes"
    ALL_ARE_BACK = "all-are-back"
    STALE_COMPUTATION = "stale-computation"
    NOTHING_CHANGES = "nothing-changes"
    PUBLISHES = "publishes"
    TAKES_OVER = "takes-over"
    PUBLISHED_BY_ANOTHER = "published-by-another"
    BARRIER_DONE = "barrier-done"
    BARRIER_TIMED_OUT = "barrier-timed-out"
    WORK_STAYS = "work-stays"
    WORK_CHANGES = "work-changes"
    FOLLOWS = "follows"
    NOT_PLANNED = "not-planned"
    JOINS = "joins"
    STARTS = "starts"
    STARTED = "started"
    OVERTAKEN = "overtaken"
    SESSION_LOST = "session-lost"
    SESSION_GIVEN_UP = "session-given-up"
    STOPS = "stops"
    WORK_LOST = "work-lost"
    WORK_OVER = "work-over"
    FAILED = "failed"


UNEXPECTED = frozenset({ProcessorReasonKind.WORK_LOST})
"""The kinds that an operator should see as warnings."""


@dataclass(frozen=True, slots=True)
class ProcessorReason:
    """One fact; ``facts`` fill its sentence."""

    kind: ProcessorReasonKind
    facts: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return _SENTENCES[self.kind].format_map(dict(self.facts))


_K = ProcessorReasonKind
_SENTENCES: Mapping[ProcessorReasonKind, str] = MappingProxyType(
    {
        _K.REGISTERS: "The session is new: processor {processor} registers",
        _K.LEADS: "Registration {sequence} is the first one: it leads",
        _K.LEADS_NO_MORE: "This processor leads no more",
        _K.WAITS_FOR_TWIN: "Registration {twin} has this id: this processor waits for its end",
        _K.TWIN_STAYS: "Registration {twin} still has the processor id: this processor ends",
        _K.REBALANCE_DUE: "{cause}: a new version is due when it has been calm for a while",
        _K.COMPUTES: "It was calm: the version after {version} is computed",
        _K.ALL_ARE_BACK: "All members of version {version} are back: the next one is computed",
        _K.STALE_COMPUTATION: "Processors or versions changed meanwhile: the answer is not used",
        _K.NOTHING_CHANGES: "Members and tasks are those of version {version}: it stays",
        _K.PUBLISHES: "Version {version} is published: {changes} of {members} processors change",
        _K.TAKES_OVER: (
            "Version {version}: {lost} tasks have lost their processor, {backed} start where a "
            "standby of theirs is, {unbacked} could not be started on their backup"
        ),
        _K.PUBLISHED_BY_ANOTHER: (
            "Version {version} is refused: another one is the newest, a processor has begun its "
            "work meanwhile, or the own registration is gone"
        ),
        _K.BARRIER_DONE: "All {members} members have joined: version {version} is in force",
        _K.BARRIER_TIMED_OUT: "Not joined in time, version {version}: {missing}",
        _K.WORK_STAYS: "Version {version} leaves generation {generation} as it is",
        _K.WORK_CHANGES: "Version {version} changes the work: of {held} tasks {kept} are kept",
        _K.FOLLOWS: (
            "Version {version} changes the standbys: {standbys} are kept from now on, {kept} of "
            "them were before"
        ),
        _K.NOT_PLANNED: "Version {version} has no place for this registration: its work stops",
        _K.JOINS: "Nothing is held that version {version} gives to another: it joins",
        _K.STARTS: (
            "Version {version} is in force: generation {generation} starts, tasks: {tasks}, "
            "standbys: {standbys}"
        ),
        _K.STARTED: "Generation {generation} has started",
        _K.OVERTAKEN: "Generation {generation} was overtaken before it began",
        _K.SESSION_LOST: "The session is over: all work stops",
        _K.SESSION_GIVEN_UP: "No connection for as long as a session lasts: all work stops",
        _K.STOPS: "The user's program stops the processor",
        _K.WORK_LOST: (
            "Generation {generation}: the work ended ({cause}): {error}; the processor gives its "
            "session up and registers again"
        ),
        _K.WORK_OVER: "Generation {generation}: the work ended ({cause}): the processor leaves",
        _K.FAILED: "The work has failed: {error}",
    }
)
