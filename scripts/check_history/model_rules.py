"""Rules of a JobModel that changes while the job runs, and of what it may cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .reading import EVENTS, Event
from .run import Incarnation, Run


def owners_have_stopped(run: Run) -> Iterator[str]:
    """Check that no container may own a task while an earlier owner, of any processor, lives.

    Evidence is that its launcher waited for it, or that its lease has run out; a new AM attempt has
    waited for so long that it has.
    """
    given_up = _unheard(run)
    for index, newer in enumerate(run.incarnations):
        granted = newer.one("driver", "permit-granted")
        if granted is None:
            continue
        for older in run.incarnations[:index]:
            end = older.ended_at if older.own else None
            if end is None or not older.shares_task(newer) or not run.is_after(end, granted.at):
                continue
            if not run.has_permit(older):
                continue  # the evidence may be gone
            stated = [*older.all("driver", "revoked"), *given_up.get(str(older.key), [])]
            if not any(event.at <= granted.at for event in stated):
                yield (
                    f"{newer} was permitted at {granted.at} ms, and {older}, which had one of its "
                    f"tasks, lived until {end} ms"
                )


def _unheard(run: Run) -> dict[str, list[Event]]:
    """{key of an incarnation: the events that say that it was waited for in vain}."""
    found: dict[str, list[Event]] = {}
    for event in run.job.events:
        if event.name == "hold-back-over":
            for name in event.fields.get("unheard") or ():
                processor_id, _, epoch = str(name).rpartition("@")
                key = (processor_id, int(epoch) if epoch.isdigit() else -1)
                found.setdefault(str(key), []).append(event)
    return found


def changes_stop_whom_they_change(run: Run) -> Iterator[str]:
    """Check that only changed tasks, inputs or changelog partitions have a container stopped.

    But for the job's end, a key that every container reads when it starts, an operator's command,
    a standby whose place its active takes, and a temporary one.
    """
    for incarnation in filter(run.is_whole, run.incarnations):
        granted = incarnation.one("driver", "permit-granted")
        ordered = incarnation.one("driver", "stop-ordered")
        if granted is None or ordered is None or _is_overtaken(run, incarnation, ordered):
            continue
        if granted.fields.get("temporary"):
            continue  # a temporary standby is there for a command
        later = [e for e in run.job.events if granted.at <= e.at <= ordered.at]
        if not any(_concerns(event, incarnation.key[0]) for event in later):
            yield (
                f"{incarnation} was ordered to stop at {ordered.at} ms, although nothing had "
                f"changed for it ({ordered.place})"
            )


def _is_overtaken(run: Run, incarnation: Incarnation, ordered: Event) -> bool:
    """Whether its processor had a later permit by then: no launcher may run it any more."""
    granted = (
        other.one("driver", "permit-granted")
        for other in run.incarnations
        if other.key[0] == incarnation.key[0] and other.key[1] > incarnation.key[1]
    )
    return any(event is not None and event.at <= ordered.at for event in granted)


def _concerns(event: Event, processor_id: str) -> bool:
    if event.name == "job-ending":
        return True
    if event.name == "failover-decided":
        return event.fields.get("standby") == processor_id
    if event.name == "placement-answered":
        return processor_id in {event.fields.get("commanded"), event.fields.get("standby")}
    if event.name != "model-change":
        return False
    return bool(event.fields.get("restarts_all")) or processor_id in _changed(event)


def _changed(event: Event) -> dict[str, Any]:
    changed = event.fields.get("changed")
    return changed if isinstance(changed, dict) else {}


def containers_have_their_tasks(run: Run) -> Iterator[str]:
    """Check that a container has the tasks of its processor in its version of the JobModel.

    The last change of the processor up to that version decides. A processor without a change keeps
    its tasks.
    """
    changes = [e for e in run.job.events if e.name == "model-change"]
    for incarnation in run.incarnations:
        fenced = incarnation.one("container", "fenced")
        version = incarnation.said("model_version")
        if fenced is None or not isinstance(version, int):
            continue
        given = [
            (e.at, _changed(e)[incarnation.key[0]].get("after"))
            for e in changes
            if incarnation.key[0] in _changed(e)
            and e.at <= fenced.at
            and int(e.fields.get("version", 0)) <= version
        ]
        has = sorted(map(str, fenced.fields.get("tasks") or ()))
        # A later change than the last that is there may be gone.
        if not given or not run.is_kept(EVENTS, given[-1][0]):
            continue
        wanted = sorted(given[-1][1] or {})
        if wanted != has:
            yield (
                f"{incarnation} has the tasks {has}, and version {version} of the JobModel gives "
                f"it {wanted}"
            )


def failovers_move_lost_tasks_alone(run: Run) -> Iterator[str]:
    """Check that a version that follows from a loss takes tasks from lost containers alone.

    Of mixed containers on YARN: the lost ones are left without tasks, and each other one works on
    with its own (STANDBY, part 4).
    """
    changes = {e.fields.get("version"): e for e in run.job.events if e.name == "model-change"}
    for event in run.job.events:
        lost = event.fields.get("processors")
        change = changes.get(event.fields.get("version"))
        if event.name != "tasks-taken-over" or not isinstance(lost, list) or change is None:
            continue
        version = event.fields.get("version")
        for processor_id, tasks in sorted(_changed(change).items()):
            before, after = (set(tasks.get(when) or {}) for when in ("before", "after"))
            if processor_id in lost and after:
                yield f"version {version}: lost container {processor_id} has {sorted(after)}"
            elif processor_id not in lost and before - after:
                yield (
                    f"version {version}: container {processor_id} loses {sorted(before - after)}, "
                    f"and lost are {lost} ({event.place})"
                )
