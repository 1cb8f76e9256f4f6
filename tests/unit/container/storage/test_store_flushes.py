"""Flushes of stores in turns, beside the thread that writes to them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import pytest

from homeport.config.errors import StoreError
from homeport.container.host.executors import OneThread, SameThread
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.store_flushes import StoreFlushes

_LIMIT_S = 30.0


@dataclass
class _Flush:
    name: str
    stores: _Stores
    has_moved: bool = True

    def run(self, *_steps: object) -> None:
        self.stores.clock_s += self.stores.cost_s
        self.stores.begun.set()
        assert self.stores.may_go_on.wait(_LIMIT_S)
        if self.name == self.stores.bad:
            raise StoreError(f"{self.name} is bad")
        self.stores.flushed.append(self.name)


@dataclass
class _Stores:
    """So many stores that are due in each round; ``new``: those with first changes."""

    due: int = 0
    new: list[str] = field(default_factory=list)
    adjuncts: int = 0
    bad: str | None = None
    cost_s: float = 0.0
    clock_s: float = 0.0
    flushed: list[str] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_go_on.set()

    def clock(self) -> float:
        """The time, which goes on with each flush."""
        return self.clock_s

    def first_flushes(self) -> Iterator[_Flush]:
        """Those with first changes, once."""
        while self.new:
            yield _Flush(self.new.pop(), self)

    @property
    def logged(self) -> range:
        """As many as are due."""
        return range(self.due)

    def due_flushes(self) -> Iterator[_Flush]:
        """All that are due."""
        return (_Flush(str(number), self) for number in range(self.due))

    def flush_adjuncts(self, *_steps: object) -> int:
        """How many of them had moved."""
        return self.adjuncts

    def require_sound(self) -> None:
        """They are."""


def _flushes(stores: _Stores, beside: OneThread | SameThread) -> StoreFlushes:
    return StoreFlushes(cast("ContainerStorage", stores), beside, stores.clock)


def _begin_and_wait(flushes: StoreFlushes, stores: _Stores) -> None:
    """The first flushes of a round are done, and no step has heard of it."""
    stores.may_go_on.clear()
    flushes.begin()
    assert flushes.step() == 0
    assert flushes._call is not None
    stores.may_go_on.set()
    while not flushes._call.done():
        flushes._beside.wait(flushes._call, _LIMIT_S)


def _until_done(flushes: StoreFlushes, stores: _Stores) -> int:
    pause = threading.Event()
    for _ in range(int(_LIMIT_S * 1000)):
        if moved := flushes.step():
            return moved
        stores.clock_s += 1
        pause.wait(0.001)
    raise AssertionError("it never ends")


def test_in_one_thread_all_is_flushed_at_once() -> None:
    """However many there are, and whatever it costs."""
    stores = _Stores(due=100, adjuncts=1, cost_s=1)
    flushes = _flushes(stores, SameThread())
    assert flushes.step() == 0
    flushes.begin()
    assert flushes.step() == 101
    assert (len(stores.flushed), flushes.is_in_round) == (100, False)
    assert flushes.step() == 0


def test_only_stores_with_first_changes_come_without_a_round() -> None:
    """And they come first in one."""
    stores = _Stores(due=2, new=["a"])
    flushes = _flushes(stores, SameThread())
    assert flushes.step() == 1
    stores.new.append("b")
    flushes.begin()
    assert flushes.step() == 3
    assert stores.flushed == ["a", "b", "0", "1"]


def test_what_did_not_move_does_not_count() -> None:
    """Its STORE-META is written."""
    stores = _Stores()
    stores.due_flushes = lambda: iter([_Flush("0", stores, has_moved=False)])  # type: ignore[method-assign]  # a stand-in
    flushes = _flushes(stores, SameThread())
    flushes.begin()
    assert (flushes.step(), stores.flushed) == (0, ["0"])


def test_the_writing_thread_waits_for_nothing() -> None:
    """While a flush is under way a step returns at once."""
    stores = _Stores(due=100)
    stores.may_go_on.clear()
    flushes = _flushes(stores, OneThread("test"))
    flushes.begin()
    assert (flushes.step(), flushes.step(), flushes.is_in_round) == (0, 0, True)
    stores.may_go_on.set()
    assert _until_done(flushes, stores) == 100
    flushes.end()


def test_rests_keep_the_flushes_to_their_share_of_the_time() -> None:
    """A tenth: nine times the cost goes by before the next part."""
    stores = _Stores(due=40, cost_s=0.001)
    flushes = _flushes(stores, OneThread("test"))
    _begin_and_wait(flushes, stores)
    assert (flushes.step(), len(stores.flushed)) == (0, 32)
    stores.clock_s += 0.287
    assert (flushes.step(), flushes._call) == (0, None)
    stores.clock_s += 0.002
    assert _until_done(flushes, stores) == 40
    flushes.end()


def test_large_stores_do_not_rest_for_long() -> None:
    """A second at most, and a round begins with none: a commit is as late as it must be."""
    stores = _Stores(due=40, cost_s=1)
    flushes = _flushes(stores, OneThread("test"))
    _begin_and_wait(flushes, stores)
    assert (flushes.step(), flushes._call) == (0, None)
    stores.clock_s += 1
    assert _until_done(flushes, stores) == 40
    _begin_and_wait(flushes, stores)
    flushes.end()


def test_a_part_of_very_many_stores_has_more_of_them() -> None:
    """A round has so many parts at most."""
    stores = _Stores(due=6400, cost_s=0.001)
    flushes = _flushes(stores, OneThread("test"))
    _begin_and_wait(flushes, stores)
    assert (flushes.step(), len(stores.flushed)) == (0, 200)
    flushes.end()


def test_the_end_waits_for_one_store_only() -> None:
    """The others are flushed by the caller, if it flushes at all."""
    stores = _Stores(due=40)
    stores.may_go_on.clear()
    flushes = _flushes(stores, OneThread("test"))
    flushes.begin()
    flushes.step()
    assert stores.begun.wait(_LIMIT_S)
    ending = threading.Thread(target=flushes.end)
    ending.start()
    while not flushes._is_ended:
        ending.join(0.001)
    stores.may_go_on.set()
    ending.join(_LIMIT_S)
    assert (ending.is_alive(), stores.flushed) == (False, ["0"])


@pytest.mark.parametrize("beside", [SameThread, partial(OneThread, "test")])
def test_a_store_that_fails_fails_the_writing_thread(
    beside: type[SameThread] | partial[OneThread],
) -> None:
    """At one of its next steps."""
    stores = _Stores(due=3, bad="1")
    flushes = _flushes(stores, beside())
    flushes.begin()
    with pytest.raises(StoreError, match="1 is bad"):
        _until_done(flushes, stores)
    assert stores.flushed == ["0"]


def test_an_end_has_no_word_on_a_store_that_fails() -> None:
    """It has ended for a reason of its own; a flush that follows meets the fault again."""
    stores = _Stores(due=3, bad="1")
    flushes = _flushes(stores, OneThread("test"))
    _begin_and_wait(flushes, stores)
    flushes.end()
    assert stores.flushed == ["0"]
