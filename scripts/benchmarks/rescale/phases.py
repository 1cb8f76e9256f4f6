"""Where the time of a change goes, container by container, from the history of all processes.

PURE: events in, seconds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from check_history.reading import Event

Tasks = Mapping[str, frozenset[str]]
"""{processor: its tasks}."""

_PUBLISHED = "model published"
_OF_THE_OLD = (("ordered to let go", ("stop-ordered",)), ("let go", ("let-go", "child-stopped")))
_OF_THE_NEW = (
    ("permitted", "permit-granted"),
    ("process started", "child-started"),
    ("fenced", "fenced"),
    ("restored", "restore-finished"),
    ("started", "started"),
    ("first commit", "transaction-committed"),
)
STEPS = (_PUBLISHED, *(step for step, _ in (*_OF_THE_OLD, *_OF_THE_NEW)))


@dataclass(frozen=True)
class Begun:
    """An incarnation that the change began. ``steps_s``: {step: what it took}, in their order."""

    processor_id: str
    steps_s: Mapping[str, float]
    seconds: Mapping[str, float]
    """What it reported of its start."""

    @property
    def total_s(self) -> float:
        """From the key's write to its first committed output."""
        return sum(self.steps_s.values())


@dataclass(frozen=True)
class Side:
    """The job before a change, or after it: epochs and tasks of the processors."""

    epochs: Mapping[str, int]
    tasks: Tasks


def begun(events: Sequence[Event], written_ms: float, before: Side, after: Side) -> list[Begun]:
    """Return the incarnations that the change began, by processor.

    ``events``: the history of the job. ``written_ms``: when the key was written.
    """
    later = [event for event in events if event.wall_ms >= written_ms]
    found = []
    for processor, epoch in sorted(after.epochs.items()):
        if before.epochs.get(processor) != epoch:
            own = after.tasks[processor]
            owners = {p: before.epochs.get(p) for p, tasks in before.tasks.items() if tasks & own}
            found.append(_begun(later, written_ms, (processor, epoch), owners))
    return found


def _last_of_firsts(
    later: Iterable[Event], names: Sequence[str], owners: Mapping[str, int | None]
) -> int | None:
    """When the last of these incarnations had its first event of a name."""
    first: dict[str, int] = {}
    for event in later:
        owner = event.processor_id
        if owner is None or event.name not in names:
            continue
        if owner in owners and event.epoch == owners[owner]:
            first.setdefault(owner, event.wall_ms)
    return max(first.values(), default=None)


def _begun(
    later: Sequence[Event],
    written_ms: float,
    incarnation: tuple[str, int],
    owners: Mapping[str, int | None],
) -> Begun:
    own = [event for event in later if (event.processor_id, event.epoch) == incarnation]
    at = {_PUBLISHED: min((e.wall_ms for e in later if is_published(e)), default=None)}
    for step, names in _OF_THE_OLD:
        at[step] = _last_of_firsts(later, names, owners)
    for step, name in _OF_THE_NEW:
        times = [event.wall_ms for event in own if event.name == name]
        last = max if step == "restored" else min
        at[step] = last(times, default=None)
    steps, until = {}, written_ms
    for step in STEPS:
        # A step that was over before the one before it, or that there was not, took nothing.
        reached = max(until, at[step] or until)
        steps[step], until = (reached - until) / 1000, reached
    seconds = [event.fields.get("seconds", {}) for event in own if event.name == "started"]
    return Begun(incarnation[0], steps, seconds[-1] if seconds else {})


def is_published(event: Event) -> bool:
    """Return whether the driver learnt of a new JobModel there."""
    return event.name == "decision" and "JobModelPublished" in str(event.fields.get("cause"))
