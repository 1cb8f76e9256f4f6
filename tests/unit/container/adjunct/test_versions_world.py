"""Every crash of a container that builds and serves versions, on a small world searched whole.

The world: a log of one or two partitions, the stores of versions as they are in memory and as they
are on the disk, and the catalogue. Any store may reach the disk at any time before its flush, as an
engine's memory tables do. A container may die between any two steps, also before its first. After
each step what is shown is one whole version of the log, never an older one than before; whatever
happened, each version that is whole in the log is shown where the log ends behind it.

Lives at random go through longer logs, of up to three partitions, with retention that deletes what
was not read, and more crashes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest

from homeport.container.adjunct.steps import AdjunctAction, AdjunctStep
from homeport.container.adjunct.version_text import (
    catalogue_text,
    parse_catalogue,
    parse_parts,
    parts_text,
)
from homeport.container.adjunct.versions import (
    Catalogue,
    Marker,
    MarkerKind,
    Run,
    VersionProgress,
    Versions,
    VersionVerdict,
    flush_step,
    removable,
    verdict_plan,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from tests.unit.container.adjunct.version_lives import Life

_SHARE = 60

_parts_in = functools.cache(parse_parts)
_catalogue_in = functools.cache(parse_catalogue)


class Image(NamedTuple):
    """What one version's store holds: {(partition, key): value}, and the text of its parts."""

    entries: frozenset[tuple[tuple[int, str], int]]
    parts: str


Images = tuple[tuple[int, Image], ...]
"""(version, what its store holds), sorted."""


@dataclass(frozen=True)
class World:
    """One state. ``memory``: None: no container runs. ``shown``: the version that tasks see.

    ``positions``: the offset that comes next of each partition, as its consumer stands.
    """

    disk: Images
    catalogue: str
    live: Images
    memory: Versions | None
    plan: tuple[AdjunctStep, ...]
    shown: int | None
    newest: int | None
    crashes: int
    positions: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal states."""
        memory = None
        if self.memory is not None:
            stands = tuple((n, parts_text(p)) for n, p in sorted(self.memory.building.items()))
            memory = (catalogue_text(self.memory.catalogue), stands)
        return (
            *(self.disk, self.catalogue, self.live, memory, self.plan, self.shown, self.newest),
            *(self.crashes, self.positions),
        )


Log = Mapping[SystemStreamPartition, tuple[str, ...]]


def _log(*partitions: str) -> Log:
    return {
        SystemStreamPartition("kafka", "planes", number): tuple(text.split())
        for number, text in enumerate(partitions)
    }


def _marker(word: str) -> Marker | None:
    kind, _, number = word.partition(":")
    if kind not in ("begin", "end"):
        return None
    return Marker(MarkerKind(kind), int(number) if number else None)


class Search:
    """Every world within a number of crashes."""

    def __init__(self, log: Log, good: Mapping[int, frozenset[str]], crashes: int) -> None:
        self._log = log
        self._good = good
        self._first = World((), catalogue_text(Catalogue()), (), None, (), None, None, crashes)

    def run(self) -> int:
        """How many worlds there are; AssertionError where one shows what it must not."""
        seen = {self._first.key}
        todo = [self._first]
        while todo:
            world = todo.pop()
            after = list(self._after(world))
            if not after:
                assert world.shown == max(self._good), "the newest good version is not shown"
            for following in after:
                self._judge(following)
                if (key := following.key) not in seen:
                    seen.add(key)
                    todo.append(following)
        return len(seen)

    def _judge(self, world: World) -> None:
        if world.memory is None:
            return
        if world.shown is None:
            assert world.newest is None, "a version that was shown is gone"
            return
        keys = frozenset(key for (_, key), _ in dict(world.live)[world.shown].entries)
        assert world.shown in self._good, f"version {world.shown} is shown"
        assert keys == self._good[world.shown], f"version {world.shown} is shown with {set(keys)}"
        assert world.newest is None or world.shown >= world.newest, "an older version is shown"

    def _after(self, world: World) -> Iterator[World]:
        if world.memory is None:
            yield self._started(world)
            return
        if world.plan:
            # The catalogue is written, and what is gone removed, beside the batches.
            yield self._stepped(world)
            yield from self._read(world, world.memory)
        else:
            verdict = world.memory.verdict(_SHARE)
            # A flush goes on beside the batches: the store reaches the disk as at any other time.
            if verdict is not None and _is_ready(world, verdict):
                plan = verdict_plan("airlines", world.memory, verdict)
                yield replace(world, plan=plan, memory=world.memory.decided(verdict))
            if verdict is None or not _is_ready(world, verdict):
                yield from self._read(world, world.memory)
        on_disk = dict(world.disk)
        for number, image in world.live:
            if on_disk.get(number) != image:
                yield _flushed(world, number)
        if world.crashes:
            yield replace(world, live=(), memory=None, plan=(), crashes=world.crashes - 1)

    def _started(self, world: World) -> World:
        """What a start makes of the disk alone."""
        catalogue = _catalogue_in(world.catalogue)
        kept = dict(world.disk)
        for number in removable(catalogue, kept):
            del kept[number]
        stores: dict[int, VersionProgress] = {
            n: _parts_in(image.parts) for n, image in kept.items()
        }
        versions = Versions.found(self._log, catalogue, stores)
        for ssp in self._log:
            versions = versions.begun(ssp, 0)
        images = tuple(sorted(kept.items()))
        newest = world.newest if world.shown is None else world.shown
        return replace(
            world,
            disk=images,
            live=images,
            memory=versions,
            shown=catalogue.served,
            newest=newest,
            positions=tuple(versions.cursor(ssp).next for ssp in self._log),
        )

    def _read(self, world: World, memory: Versions) -> Iterator[World]:
        """One record of any partition that has one."""
        for place, (ssp, words) in enumerate(self._log.items()):
            offset = world.positions[place]
            if offset >= len(words):
                continue
            word = words[offset]
            marker = _marker(word)
            run = Run(ssp, [offset], [offset], {} if marker is None else {0: marker})
            taken = memory.take(run)
            live = dict(world.live)
            for number, part in taken.parts.items():
                old = live.get(number, Image(frozenset(), "{}"))
                parts = parts_text({**_parts_in(old.parts), ssp: part})
                added = {
                    ((ssp.partition, word), offset) for w in taken.writes if w.number == number
                }
                live[number] = Image(old.entries | added, parts)
            disk = dict(world.disk)
            for number in live.keys() - dict(world.live).keys():
                disk[number] = live[number]  # a new version's store is flushed at once
            yield replace(
                world,
                live=tuple(sorted(live.items())),
                disk=tuple(sorted(disk.items())),
                memory=taken.versions,
                positions=tuple(o + (p == place) for p, o in enumerate(world.positions)),
            )

    def _stepped(self, world: World) -> World:
        step, rest = world.plan[0], world.plan[1:]
        assert step.version is not None
        assert world.memory is not None
        if step.action is AdjunctAction.WRITE_CATALOGUE:
            world = replace(world, catalogue=catalogue_text(world.memory.catalogue))
        elif step.action is AdjunctAction.SWITCH_VERSION:
            world = replace(world, shown=step.version, newest=step.version)
        else:
            world = replace(world, live=_without(world.live, step), disk=_without(world.disk, step))
        return replace(world, plan=rest)


def _is_ready(world: World, verdict: VersionVerdict) -> bool:
    """Whether the plan of the verdict may begin."""
    if flush_step("airlines", verdict) is None:
        return True
    return dict(world.disk).get(verdict.number) == dict(world.live)[verdict.number]


def _flushed(world: World, number: int) -> World:
    disk = {**dict(world.disk), number: dict(world.live)[number]}
    return replace(world, disk=tuple(sorted(disk.items())))


def _without(images: Images, step: AdjunctStep) -> Images:
    return tuple(item for item in images if item[0] != step.version)


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


def test_one_partition_survives_every_two_crashes() -> None:
    """Three good versions, one that began again and one that shrank."""
    log = _log("a b end c begin d e end f end g h end i")
    good = {1: _keys("a b"), 3: _keys("d e"), 5: _keys("g h")}
    assert Search(log, good, crashes=2).run() > 500


_FIRST = "begin:1 a end:1 begin:2 b end:2"


def _up_to(log: Log, number: int) -> Log:
    """The log as it stood when no partition had more than begun what follows that version."""
    ends = {ssp: words.index(f"end:{number}") for ssp, words in log.items()}
    return {ssp: words[: ends[ssp] + 3] for ssp, words in log.items()}


def test_a_version_that_a_partition_has_left_is_served_after_a_crash() -> None:
    """What it has of the older one may be gone, where what it has of the newer one is not."""
    log = _up_to(_log(_FIRST, "begin:1 x end:1 begin:2 y"), 1)
    assert Search(log, {1: _keys("a x")}, crashes=1).run() > 500


@pytest.mark.search
@pytest.mark.parametrize(
    ("second", "good"),
    [
        ("begin:1 x end:1 begin:2 y end:2", {1: _keys("a x"), 2: _keys("b y")}),
        ("begin:1 x begin:2 y end:2", {2: _keys("b y")}),
    ],
)
def test_two_partitions_survive_every_crash(second: str, good: dict[int, frozenset[str]]) -> None:
    """Either may be ahead; in the second case one of them never ends version 1."""
    log = _log(_FIRST, second)
    for number in good:
        older = {n: keys for n, keys in good.items() if n <= number}
        assert Search(_up_to(log, number), older, crashes=1).run() > 500


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_lives_at_random_show_each_version_that_is_whole(first: int) -> None:
    """Whatever is deleted, and wherever they die."""
    for seed in range(first, first + 250):
        try:
            Life(seed).run()
        except AssertionError as error:
            raise AssertionError(f"life {seed}: {error}") from error


@pytest.mark.parametrize("action", [AdjunctAction.FLUSH_VERSION, AdjunctAction.WRITE_CATALOGUE])
def test_the_search_finds_a_step_that_is_left_out(
    action: AdjunctAction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the flush or the catalogue a crash shows less than a version, or an older one."""
    plan_of = verdict_plan

    def without(store: str, versions: Versions, verdict: VersionVerdict) -> tuple[AdjunctStep, ...]:
        return tuple(
            step for step in plan_of(store, versions, verdict) if step.action is not action
        )

    monkeypatch.setitem(globals(), "verdict_plan", without)
    if action is AdjunctAction.FLUSH_VERSION:
        monkeypatch.setitem(globals(), "flush_step", lambda *_: None)
    log = _log("a b end c d end e")
    with pytest.raises((AssertionError, KeyError)):
        Search(log, {1: _keys("a b"), 2: _keys("c d")}, crashes=1).run()
