"""The rule of input offsets: nothing is left out and nothing is committed twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .reading import EVENTS, TRANSACTIONS, Event
from .run import Incarnation, Run, Transaction

_REPARTITION = "__homeport_repartition_"
"""Topics that jobs write in transactions: the end of each takes an offset, and is no record."""
_Gap = tuple[int, int]
"""The first offset that was lost, and the one to go on with."""


@dataclass(frozen=True)
class _Place:
    """Where a partition goes on: one of ``offsets``, else, with ``or_later``, beyond them.

    ``at``, ``owner``: when the transaction began that left it there, and whose it was.
    """

    offsets: frozenset[int]
    at: int
    owner: Incarnation
    or_later: bool = False


def offsets_go_on(run: Run) -> Iterator[str]:
    """Check that each input partition goes on where the last committed transaction ended.

    After a reset of the state, or of an input that starts again, any place is correct, as it is
    when an input returns that a container has reported as left. Where a container reports that its
    input was lost, or that it is configured to begin elsewhere, so is the place that it names.
    Where it reports that an operator has set its checkpoint, that place alone is. Where
    transactions in between may be gone, any later place is.
    """
    places: dict[str, _Place] = {}
    left = _begun_anew(run)
    for incarnation in run.incarnations:
        while left and left[0][0] <= incarnation.began_at:
            _, stream = left.pop(0)
            for partition in [p for p in places if stream in {"", _stream(p)}]:
                del places[partition]
        for event in incarnation.all("container", "input-left"):
            places.pop(_said(event)[0], None)
        gaps = _gaps(incarnation)
        places |= _led_elsewhere(incarnation, places, gaps)
        for transaction in incarnation.transactions:
            if not transaction.follows:
                places = {p: replace(place, or_later=True) for p, place in places.items()}
            for partition, last in sorted(transaction.last.items()):
                first = transaction.first.get(partition)
                place = _still(run, incarnation, places.get(partition))
                place = _or_behind(place, gaps.get(_input(partition), ()))
                if transaction.committed is not None:
                    yield from _judged(run, incarnation, transaction, partition, place)
                    offsets = frozenset({last + 1})
                elif first is not None:
                    # Perhaps committed: the next container goes on from before it or after it.
                    before = {first} if place is None or place.or_later else place.offsets
                    offsets = frozenset({*before, last + 1})
                else:
                    continue
                places[partition] = _Place(offsets, transaction.began_at, incarnation)


def _still(run: Run, incarnation: Incarnation, place: _Place | None) -> _Place | None:
    """The place, by what may have been written between the two transactions and is gone."""
    if place is None or place.owner is incarnation:
        return place  # a series loses lines from its begin on only
    is_late = place.at > incarnation.began_at and not run.has_permit(place.owner)
    if is_late or not run.is_kept(EVENTS, place.at):
        return None  # a reset, too, may be gone
    if not run.is_kept(TRANSACTIONS, place.at):
        return replace(place, or_later=True)
    return place


def _led_elsewhere(
    incarnation: Incarnation, places: Mapping[str, _Place], gaps: Mapping[str, Sequence[_Gap]]
) -> dict[str, _Place]:
    """The places that the container's own start changes, as its configuration says so.

    Perhaps it commits nothing, so that the next container goes on where this one was to. But what
    an operator has set stays so until a container commits.
    """
    changed: dict[str, _Place] = {}
    for event in incarnation.all("container", "checkpoint-set"):
        partition, following = _said(event)
        if partition in places and isinstance(following, int):
            place = replace(places[partition], offsets=frozenset({following}), or_later=False)
            changed[partition] = place
    for partition, place in ({**places, **changed}).items():
        of_task = partition.rpartition(" / ")[0] in incarnation.tasks
        if of_task and (found := gaps.get(_input(partition))):
            changed[partition] = _or_behind(place, found) or place
    for event in incarnation.all("container", "input-reset"):
        partition, following = _said(event)
        known = changed.get(partition) or places.get(partition)
        if known is not None and isinstance(following, int):
            changed[partition] = replace(known, offsets=known.offsets | {following})
    return changed


def _said(event: Event) -> tuple[str, object]:
    """The partition of a task that the event is about, and where it goes on."""
    partition = f"{event.fields.get('task')} / {event.fields.get('input')}"
    return partition, event.fields.get("next")


def _gaps(incarnation: Incarnation) -> dict[str, list[_Gap]]:
    """{input partition: what its container found to be lost there, in this order}."""
    gaps: dict[str, list[_Gap]] = {}
    for event in incarnation.all("container", "input-lost"):
        first, following = event.fields.get("first"), event.fields.get("next")
        if isinstance(first, int) and isinstance(following, int):
            gaps.setdefault(str(event.fields.get("input")), []).append((first, following))
    return gaps


def _or_behind(place: _Place | None, gaps: Sequence[_Gap]) -> _Place | None:
    """The place, and behind each gap that it lies in or before which it ends.

    A partition of several tasks is lost to each of them from its own place on.
    """
    for first, following in gaps:
        if place is not None and any(first <= o <= following for o in place.offsets):
            place = replace(place, offsets=place.offsets | {following})
    return place


def _judged(
    run: Run,
    incarnation: Incarnation,
    transaction: Transaction,
    partition: str,
    place: _Place | None,
) -> Iterator[str]:
    """What is wrong with where a committed transaction begins and ends."""
    event, last = transaction.committed, transaction.last[partition]
    first = transaction.first.get(partition)
    if place is None or event is None:
        return
    may_skip = run.allow_gaps or _stream(partition).partition(".")[2].startswith(_REPARTITION)
    if first is not None and not _follows(first, place, may_skip=may_skip):
        yield _skipped(incarnation, event, partition, first, place)
    # Another partition of the task may have moved alone; this one then stands.
    least = min(place.offsets)
    if last + 1 < least + (first is not None):
        yield (
            f"{incarnation}: {partition} went back to {last}, committed before was "
            f"{least - 1} ({event.place})"
        )


def _begun_anew(run: Run) -> list[tuple[int, str]]:
    """(time, input) of the first event that says that an input is read from another place.

    A reset of the state has the input "", which means all inputs; every driver records the last
    reset.
    """
    first: dict[tuple[object, str], int] = {}
    for event in run.job.events:
        if (event.role, event.name) in {("driver", "state-reset"), ("driver", "input-begun-anew")}:
            stream = str(event.fields.get("input", ""))
            first.setdefault((event.fields.get("submission"), stream), event.at)
    return sorted((at, stream) for (_, stream), at in first.items())


def _input(partition: str) -> str:
    """``kafka.in.0`` of ``Partition 0 / kafka.in.0``."""
    return partition.rpartition(" / ")[2]


def _stream(partition: str) -> str:
    """``kafka.in`` of ``Partition 0 / kafka.in.0``."""
    return _input(partition).rpartition(".")[0]


def _follows(first: int, place: _Place, *, may_skip: bool) -> bool:
    is_later = first > min(place.offsets)
    return first in place.offsets or ((may_skip or place.or_later) and is_later)


def _skipped(
    incarnation: Incarnation, event: Event, partition: str, first: int, place: _Place
) -> str:
    what = "went back" if first < min(place.offsets) else "skipped"
    expected = " or ".join(str(offset) for offset in sorted(place.offsets))
    return (
        f"{incarnation}: {partition} {what}: its transaction begins with offset {first}, after "
        f"what was committed it must be {expected} ({event.place})"
    )
