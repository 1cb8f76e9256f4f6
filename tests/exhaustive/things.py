"""The values that the small world consists of: launchers, children, the stream, the whole.

All are tuples, since a search makes and hashes a million of them. Numbers stand for what has a
name: a launcher is known by the number of its request, an incarnation is (processor, epoch).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from homeport.appmaster.allocation.protocol.events import FailoverStep

Owner = tuple[str, int]
"""(processor, epoch): an incarnation."""


class Life(IntEnum):
    """How a launcher, and what it runs, is doing."""

    UP = 0
    """It renews its lease, and the AM hears it."""
    CUT = 1
    """No process hears it or answers; its lease runs, and so does its child."""
    OUT = 2
    """As CUT; its own deadline has passed and it has ended its child."""
    FROZEN = 3
    """Stopped, with its child, in the middle of what they do: by SIGSTOP, or with its host."""


class End(IntEnum):
    """What Skein has said of the end of a container."""

    NOT_SAID = 0
    ENDED = 1
    TAKEN_BACK = 2
    """The cluster has taken it back: no failure is charged."""


class HostLife(IntEnum):
    """How a host is doing."""

    UP = 0
    FROZEN = 1
    """It stands still. The ResourceManager notices sooner or later."""
    DOWN = 2
    """Nothing of it is left."""


class Child(NamedTuple):
    """A stream container: ``done`` steps of its start, all of them once it has been heard of.

    ``version``: of the model that its permit names. ``is_open``: it was the last to initialise its
    transactional id, so Kafka takes what it writes. ``is_next``: its process has run another
    incarnation, whose producer it goes on with; in a mutant alone.
    """

    owner: Owner
    fence: tuple[Owner, ...]
    version: int = 1
    done: int = 0
    is_open: bool = False
    is_next: bool = False


class Launcher(NamedTuple):
    """A launcher process. ``ran``: what it has run or refused, and how that ended.

    ``has_resting``: the process of the last one has let go, and waits for the next permit.
    ``report``: the stop that it has not reported yet. ``is_known``: the keeper has heard it and has
    not said since that it is silent. ``is_revoked``: the keeper has said that its child's lease is
    over, which is for good (safety L1). ``is_doomed``: YARN has an order to end it. ``said``: what
    Skein says of its end, also where that is wrong.
    """

    request: int
    host: str
    life: Life = Life.UP
    child: Child | None = None
    ran: tuple[tuple[Owner, str], ...] = ()
    report: tuple[Owner, str] | None = None
    is_known: bool = False
    is_revoked: bool = False
    is_doomed: bool = False
    said: End = End.NOT_SAID
    has_resting: bool = False

    @property
    def is_denied(self) -> bool:
        """Whether Skein says that it has ended."""
        return self.said is not End.NOT_SAID

    @property
    def is_lease_good(self) -> bool:
        """Whether anybody may still count on the child: the keeper, or the launcher itself."""
        return self.life in {Life.UP, Life.CUT} or not self.is_revoked

    def __str__(self) -> str:
        inside = f"{self.child.owner[0]}@{self.child.owner[1]}" if self.child else "nothing"
        return f"launcher {self.request} on {self.host} with {inside}"


class EpochRecord(NamedTuple):
    """The last ``set-processor-epoch`` of a processor; ``permitted`` is behind a raised epoch."""

    epoch: int
    fence: tuple[Owner, ...]
    permitted: int
    version: int = 1


class Failover(NamedTuple):
    """A ``set-failover`` that has not been ended; ``standby`` and ``host`` are "" for none."""

    active: str
    epoch: int
    standby: str
    host: str
    step: FailoverStep
    used: tuple[str, ...]


class Command(NamedTuple):
    """A placement request that has no final answer yet; ``source``: (epoch, host) once it began.

    ``is_warm``: the state is to be read at the destination first.
    """

    number: int
    processor: str
    destination: str
    source: tuple[int, str] | None = None
    is_warm: bool = False


class Stream(NamedTuple):
    """What the coordinator stream says; each part sorted by its first.

    ``failures``: {processor: its count}; ``stopped``: permitted last, and known to have stopped;
    ``end``: the result that the job is to end with, "" for none.
    """

    epochs: tuple[tuple[str, EpochRecord], ...] = ()
    homes: tuple[tuple[str, str], ...] = ()
    failovers: tuple[Failover, ...] = ()
    commands: tuple[Command, ...] = ()
    failures: tuple[tuple[str, int], ...] = ()
    stopped: tuple[Owner, ...] = ()
    end: str = ""


Message = tuple[Any, ...]
"""The key of an event: its kind, then what it says. See ``memory.event_of``."""


class World(NamedTuple):
    """Everything there is. ``machine``: the number of the allocator's state, in ``Memory``.

    ``rm``: the hosts that the ResourceManager calls live. ``pending``: (request, host or "" for
    any). ``gone``: (request, what Skein has said of the end, host if all there is gone) of
    launchers that are no more, while the keeper has not said so. ``ended``: (request, whether YARN
    took it back, host if all there has ended): Skein's reports that have not arrived yet. ``late``:
    messages on their way. ``cancelled``: requests that YARN has orders to end, with a check-in on
    its way and an end that is not reported yet. ``adopting``: incarnations with a permit of an
    earlier driver that are not accounted for. ``was_charged``: something happened that counts as a
    failure. ``version``: of the model in force. ``silent``: the partner of which nothing more
    comes; "" for none.
    """

    machine: int
    hosts: tuple[HostLife, ...]
    rm: tuple[str, ...]
    stream: Stream = Stream()
    pending: tuple[tuple[int, str], ...] = ()
    launchers: tuple[Launcher, ...] = ()
    gone: tuple[tuple[int, End, str], ...] = ()
    ended: tuple[tuple[int, bool, str], ...] = ()
    late: tuple[Message, ...] = ()
    cancelled: tuple[int, ...] = ()
    adopting: tuple[Owner, ...] = ()
    was_charged: bool = False
    result: str = ""
    version: int = 1
    silent: str = ""


def launcher_of(world: World, request: int) -> Launcher:
    """The launcher that came of this request."""
    return next(x for x in world.launchers if x.request == request)


def with_launcher(world: World, launcher: Launcher) -> World:
    """The launcher as it now is."""
    return world._replace(
        launchers=tuple(launcher if x.request == launcher.request else x for x in world.launchers)
    )


def with_host(world: World, place: int, life: HostLife) -> World:
    """The host as it now is."""
    return world._replace(hosts=(*world.hosts[:place], life, *world.hosts[place + 1 :]))


def with_fenced(world: World, owners: tuple[Owner, ...]) -> World:
    """Their transactional ids were initialised by another: Kafka takes nothing more of theirs."""
    for launcher in world.launchers:
        child = launcher.child
        if child is not None and child.owner in owners and child.is_open:
            world = with_launcher(world, launcher._replace(child=child._replace(is_open=False)))
    return world


def settled(world: World, owner: Owner | None) -> World:
    """This one is accounted for, if it was waited for."""
    if owner is None or owner not in world.adopting:
        return world
    return world._replace(adopting=tuple(o for o in world.adopting if o != owner))
