"""Worlds that differ in names only are one: each move numbers requests and epochs again.

What makes the state space finite. Requests keep their order, and so do the epochs of a processor.
Nothing that decides is lost:

* an incarnation without a process, without a message on its way, that no driver waits for, can
  do nothing any more: the lists of incarnations to fence may forget it;
  the newest epoch of each processor is kept;
* a floor that is not above the epoch says no more than the epoch (``next_epoch``);
* stories are for people, and a series of failed launches only makes rests longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from immutables import Map

from homeport.appmaster.allocation.job_state.placements import Placement
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.job_state.table import PersistentSet, Table
from homeport.appmaster.allocation.protocol.events import Timer
from homeport.job_coordinator.model.ids import RequestId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.placement import PlacementSource
from tests.exhaustive.memory import Memory, resource_of
from tests.exhaustive.things import EpochRecord, Launcher, Message, Owner, World

_PARTS = ("containers", "resources", "early", "placements", "timers", "retired")
_TOLD = {"last_failure": None, "story": "", "stale_events": 0, "launch_failures": 0}


class _Mentions(NamedTuple):
    """What a state of the allocator names: requests, epochs of each processor, listed incarnations.

    ``is_plain``: nothing in it is for people only.
    """

    requests: frozenset[int]
    listed: frozenset[Owner]
    epochs: Mapping[str, frozenset[int]]
    next_request: int
    is_plain: bool


class _Reader:
    """Finds mentions; a part of a state that was read before is not read again."""

    def __init__(self) -> None:
        self._parts: dict[Any, tuple[frozenset[int], frozenset[Owner], bool]] = {}
        self._states: list[_Mentions | None] = []

    def mentions(self, number: int, states: Sequence[AllocatorState]) -> _Mentions:
        """Those of the state of this number."""
        known = self._states
        if number >= len(known):
            known.extend([None] * (len(states) - len(known)))
        found = known[number]
        if found is None:
            found = known[number] = self._read(states[number])
        return found

    def _read(self, state: AllocatorState) -> _Mentions:
        requests: set[int] = set(state.cancelled)
        listed: set[Owner] = set()
        is_plain = not state.stale_events
        for name in _PARTS:
            for part in getattr(state, name):
                named, who, plain = self._of_part(part)
                requests |= named
                listed |= who
                is_plain &= plain
        epochs = {str(p): frozenset({epoch}) for p, epoch in state.former.items()}
        for c in state.containers:
            own = epochs.get(str(c.processor_id), frozenset())
            epochs[str(c.processor_id)] = own | {c.epoch, c.floor}
        return _Mentions(
            frozenset(requests), frozenset(listed), epochs, state.next_request_id, is_plain
        )

    def _of_part(
        self,
        part: Any,  # noqa: ANN401 - any part of a state
    ) -> tuple[frozenset[int], frozenset[Owner], bool]:
        found = self._parts.get(part)
        if found is None:
            requests: set[int] = set()
            listed: set[Owner] = set()
            is_plain = _walk(part, requests, listed)
            found = self._parts[part] = (frozenset(requests), frozenset(listed), is_plain)
        return found


def _walk(
    value: Any,  # noqa: ANN401 - any part of a state
    requests: set[int],
    listed: set[Owner],
) -> bool:
    """Whether nothing in this part of a state is for people only; its mentions are added."""
    if isinstance(value, Incarnation):
        listed.add((value.processor_id, value.epoch))
        return True
    if isinstance(value, (tuple, frozenset)):
        return min([_walk(v, requests, listed) for v in value], default=True)
    if not is_dataclass(value) or isinstance(value, Enum):
        return True
    is_plain = True
    for field in fields(value):
        inside = getattr(value, field.name)
        if _is_request(value, field.name, inside):
            requests |= {inside} - {None}
        elif field.name in _TOLD:
            is_plain &= inside == _TOLD[field.name]
        elif field.name == "floor":
            is_plain &= inside == 0
        else:
            is_plain &= _walk(inside, requests, listed)
    return is_plain


def _is_request(value: Any, name: str, inside: object) -> bool:  # noqa: ANN401 - any part of a state
    """Whether this field has the number of a request: by its name, or as the key of a timer."""
    return name == "request_id" or (isinstance(value, Timer) and isinstance(inside, int))


class Numbering:
    """Counts the worlds of one search."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._reader = _Reader()
        self._renamed: dict[tuple[int, Any], int] = {}
        self._renamers: dict[Any, _Renamer] = {}

    def normal(self, world: World) -> World:
        """The same world, with the least numbers."""
        said = self._reader.mentions(world.machine, self._memory.states)
        requests = said.requests.union(
            (launcher.request for launcher in world.launchers),
            (request for request, _ in world.pending),
            (gone[0] for gone in world.gone),
            (end[0] for end in world.ended),
            (m[1] for m in world.late if m[0] == "check-in"),
        )
        new_requests = {old: new for new, old in enumerate(sorted(requests), 1)}
        alive = _alive(world)
        new_epochs = _new_epochs(world, said, alive)
        is_same = said.is_plain and said.next_request == len(requests) + 1
        is_same = is_same and all(old == new for old, new in new_requests.items())
        is_same = is_same and all(owner[1] == new for owner, new in new_epochs.items())
        is_same = is_same and all(owner in new_epochs for owner in said.listed)
        if is_same and all(f in new_epochs for _, r in world.stream.epochs for f in r.fence):
            return _without_past(world)
        numbers = (tuple(new_requests.items()), tuple(sorted(new_epochs.items())))
        key = (world.machine, numbers)
        machine = self._renamed.get(key)
        if machine is None:
            state = self._memory.states[world.machine]
            renamer = self._renamers.get(numbers)
            if renamer is None:
                renamer = self._renamers[numbers] = _Renamer(new_requests, new_epochs)
            machine = self._renamed[key] = self._memory.number(renamer.whole(state))
        return _without_past(_renamed(world, machine, new_requests, new_epochs))


def _alive(world: World) -> set[Owner]:
    alive = {x.child.owner for x in world.launchers if x.child is not None}
    alive.update(x.report[0] for x in world.launchers if x.report is not None)
    alive.update(world.adopting)
    for message in world.late:
        owner = message[3] if message[0] == "check-in" else message[1]
        if owner is not None:
            alive.add(owner)
    return alive


def _new_epochs(world: World, said: _Mentions, alive: set[Owner]) -> dict[Owner, int]:
    kept: dict[str, set[int]] = {p: set(epochs) for p, epochs in said.epochs.items()}
    for processor, record in world.stream.epochs:
        kept.setdefault(processor, set()).update((record.epoch, record.permitted))
    for processor, epoch in alive:
        kept.setdefault(processor, set()).add(epoch)
    return {
        (processor, old): new
        for processor, epochs in kept.items()
        for new, old in enumerate(sorted(epochs - {0}), 1)
    } | {(processor, 0): 0 for processor in kept}


def _without_past(world: World) -> World:
    """Launchers forget what no message will refer to any more."""
    epochs = dict(world.stream.epochs)
    changed = False
    launchers = []
    for launcher in world.launchers:
        if launcher.ran:
            ran = tuple(r for r in launcher.ran if epochs[r[0][0]].epoch <= r[0][1])
            if ran != launcher.ran:
                launcher = launcher._replace(ran=ran)  # noqa: PLW2901 - the hot loop
                changed = True
        launchers.append(launcher)
    return world._replace(launchers=tuple(launchers)) if changed else world


def _renamed(
    world: World, machine: int, requests: Mapping[int, int], epochs: Mapping[Owner, int]
) -> World:
    def name(owner: Owner) -> Owner:
        return (owner[0], epochs[owner])

    def names(owners: Iterable[Owner]) -> tuple[Owner, ...]:
        return tuple(name(owner) for owner in owners if owner in epochs)

    def launcher(x: Launcher) -> Launcher:
        child = x.child
        if child is not None:
            child = child._replace(owner=name(child.owner), fence=names(child.fence))
        return x._replace(
            request=requests[x.request],
            child=child,
            ran=tuple((name(o), cause) for o, cause in x.ran if o in epochs),
            report=(name(x.report[0]), x.report[1]) if x.report else None,
        )

    def message(m: Any) -> Message:  # noqa: ANN401 - by kind
        if m[0] == "check-in":
            return ("check-in", requests[m[1]], m[2], name(m[3]) if m[3] else None)
        return (m[0], name(m[1]), *m[2:])

    return world._replace(
        machine=machine,
        stream=world.stream._replace(
            epochs=tuple(
                (
                    p,
                    EpochRecord(
                        epochs[p, r.epoch], names(r.fence), epochs[p, r.permitted], r.version
                    ),
                )
                for p, r in world.stream.epochs
            ),
            failovers=tuple(
                f._replace(epoch=epochs.get((f.active, f.epoch), 0)) for f in world.stream.failovers
            ),
            stopped=names(world.stream.stopped),
            commands=tuple(
                c._replace(source=(epochs.get((c.processor, c.source[0]), 0), c.source[1]))
                if c.source
                else c
                for c in world.stream.commands
            ),
        ),
        pending=tuple((requests[r], host) for r, host in world.pending),
        launchers=tuple(launcher(x) for x in world.launchers),
        gone=tuple((requests[r], stated, host) for r, stated, host in world.gone),
        ended=tuple((requests[r], is_taken, host) for r, is_taken, host in world.ended),
        late=tuple(message(m) for m in world.late),
        cancelled=tuple(requests[r] for r in world.cancelled),
        adopting=tuple(sorted(map(name, world.adopting))),
    )


class _Renamer:
    """Any part of an allocator's state, with new numbers; each row is recreated once."""

    def __init__(self, requests: Mapping[int, int], epochs: Mapping[Owner, int]) -> None:
        self._requests = requests
        self._epochs = epochs
        self._made: dict[Any, Any] = {}

    def whole(self, state: AllocatorState) -> AllocatorState:
        """The state, with new numbers."""
        renamed: AllocatorState = self._of(state)
        return replace(
            renamed,
            next_request_id=RequestId(len(self._requests) + 1),
            cancelled=PersistentSet(RequestId(self._requests[r]) for r in state.cancelled),
            former=Map({p: self._epochs[p, epoch] for p, epoch in state.former.items()}),
            occupancy=None,
        )

    def _of(self, value: Any) -> Any:  # noqa: ANN401 - any part of a state
        if isinstance(value, (Table, PersistentSet)):
            return type(value)([self._row(v) for v in value])
        if isinstance(value, (tuple, frozenset)):
            return type(value)([self._of(v) for v in value if not self._is_past(v)])
        if is_dataclass(value) and not isinstance(value, (Enum, type)):
            return self._dataclass(value)
        return value

    def _row(self, row: Any) -> Any:  # noqa: ANN401 - any part of a state
        made = self._made.get(row)
        if made is None:
            made = self._made[row] = self._of(row)
        return made

    def _is_past(self, value: Any) -> bool:  # noqa: ANN401 - any part of a state
        incarnation = getattr(value, "incarnation", value)
        if not isinstance(incarnation, Incarnation) or hasattr(value, "phase"):
            return False
        return (incarnation.processor_id, incarnation.epoch) not in self._epochs

    def _dataclass(self, value: Any) -> Any:  # noqa: ANN401 - any part of a state
        if isinstance(value, Incarnation):
            owner = (value.processor_id, value.epoch)
            return Incarnation(value.processor_id, self._epochs[owner])
        changes: dict[str, Any] = {}
        for field in fields(value):
            if not field.compare:
                continue  # derived
            old = getattr(value, field.name)
            new = self._field(value, field.name, old)
            if new is not old and new != old:
                changes[field.name] = new
        return replace(value, **changes) if changes else value

    def _field(self, value: Any, name: str, old: Any) -> Any:  # noqa: ANN401 - by name
        if name in _TOLD:
            return _TOLD[name]
        if _is_request(value, name, old):
            return None if old is None else self._requests[old]
        if name == "resource_id":
            return None if old is None else resource_of(self._requests[int(old[1:])])
        if name == "epoch":
            return self._epochs.get((getattr(value, "processor_id", None) or value.active, old), 0)
        if name == "floor":
            return 0 if old <= value.epoch else self._epochs[value.processor_id, old]
        is_begun = name == "source" and isinstance(value, Placement) and old is not None
        return self._source(value, old) if is_begun else self._of(old)

    def _source(self, placement: Placement, old: PlacementSource) -> PlacementSource:
        owner = (placement.request.processor_id, old.epoch)
        return replace(old, epoch=self._epochs.get(owner, 0))
