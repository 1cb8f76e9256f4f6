"""The rule of adjunct stores whose data sets come in versions: which of them batches have read.

A container writes ``version-read`` before the first batch that reads a version: the batch, counted
since its start, the store's directory, the id of its topic, and of each partition where the version
stands in the stream and whether it has ended there, as the engine that is read says itself. It
looks again after each batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from .reading import Event
from .run import Incarnation, Run

_ENDED = "ended"
_Place = tuple[str, ...]


def versions_go_on(run: Run) -> Iterator[str]:
    """Check that a batch reads one whole version of a store, and a later one none older.

    What was not committed counts for nothing. A store that is not marked for bootstrap may be
    behind on another host; after a reset of the state any version is the first.
    """
    newest: dict[_Place, Event] = {}
    resets = _resets(run)
    for incarnation in run.incarnations:
        while resets and resets[0] <= incarnation.began_at:
            resets.pop(0)
            newest.clear()
        read = incarnation.all("container", "version-read")
        yield from _mixed(incarnation, read)
        for event in read:
            yield from _open(incarnation, event)
            if event.at > _committed_at(incarnation):
                continue
            place = _place(event)
            before = newest.get(place)
            if before is not None and _is_older(event, before):
                yield (
                    f"{incarnation}: {_store(event)} went back to version {_version(event)} at "
                    f"{_ends(event)}, a batch before had read {_version(before)} at "
                    f"{_ends(before)} ({event.place})"
                )
            elif _parts(event):
                newest[place] = event


def _mixed(incarnation: Incarnation, read: list[Event]) -> Iterator[str]:
    by_store: dict[str, list[Event]] = {}
    for event in read:
        by_store.setdefault(_store(event), []).append(event)
    for store, events in by_store.items():
        for before, event in pairwise(events):
            if before.fields.get("batch") == event.fields.get("batch"):
                yield (
                    f"{incarnation}: {store}: batch {event.fields.get('batch')} has read version "
                    f"{_version(before)} and version {_version(event)} ({event.place})"
                )


def _open(incarnation: Incarnation, event: Event) -> Iterator[str]:
    if _version(event) == "none":
        return
    left = {name: part.get("left") for name, part in _parts(event).items()}
    missing = set(map(str, event.fields.get("partitions") or ())) - left.keys()
    for name in sorted(missing | {name for name, is_left in left.items() if is_left != _ENDED}):
        yield (
            f"{incarnation}: {_store(event)} has version {_version(event)} read, which {name} has "
            f"not ended ({event.place})"
        )


def _resets(run: Run) -> list[int]:
    names = {"state-reset", "input-begun-anew"}
    return sorted(e.at for e in run.job.events if e.role == "driver" and e.name in names)


def _committed_at(incarnation: Incarnation) -> int:
    """When the last transaction began that may be committed; before all time, where none was."""
    return max((t.began_at for t in incarnation.transactions), default=-1)


def _place(event: Event) -> _Place:
    topic = str(event.fields.get("topic_id"))
    is_bootstrap = event.fields.get("bootstrap") is True
    return (_store(event), topic) if is_bootstrap else (_store(event), topic, event.host)


def _is_older(event: Event, before: Event) -> bool:
    ends, known = _ends(event), _ends(before)
    return any(ends[name] < end for name, end in known.items() if name in ends)


def _ends(event: Event) -> dict[str, int]:
    """{partition: the offset behind the version's end}."""
    found = {name: part.get("next") for name, part in _parts(event).items()}
    return {name: offset for name, offset in found.items() if isinstance(offset, int)}


def _parts(event: Event) -> Mapping[str, Mapping[str, object]]:
    parts = event.fields.get("parts")
    return parts if isinstance(parts, dict) else {}


def _store(event: Event) -> str:
    return str(event.fields.get("store"))


def _version(event: Event) -> str:
    version = event.fields.get("version")
    return "none" if version is None else str(version)
