"""Visits every world within so many faults of a beginning, in order of faults, then of moves.

A world that is reached with fewer faults is not visited again with more. After the visit it is
known from which worlds what happens by itself can lead to a good one: it must be all of them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from homeport.config.errors import InvariantViolation
from tests.exhaustive.judges import UnsafeError

World = TypeVar("World", bound=Hashable)


class Rules(Protocol[World]):
    """What may happen in the searched worlds, and how they are judged."""

    def free(self, world: World) -> Iterator[tuple[str, World]]:
        """What happens by itself, and leads on."""

    def relief(self, world: World) -> Iterator[tuple[str, World]]:
        """What may happen, and need not, without being a fault."""

    def faults(self, world: World) -> Iterator[tuple[str, World]]:
        """What is counted."""

    def judge(self, world: World) -> None:
        """UnsafeError where it is not as it must be."""

    def is_well(self, world: World) -> bool:
        """Whether all is as it should be in the end."""

    def shown(self, world: World) -> list[str]:
        """The world for people, line by line."""

    def states(self) -> str:
        """How many states of the searched machine there are, in words."""


Moves = Iterator[tuple[str, World]]


class FoundError(Exception):
    """A world that must not be; the message is the shortest way to it."""


@dataclass
class Search(Generic[World]):
    """One search; ``visit`` runs it. ``worlds``: all found, by number."""

    rules: Rules[World]
    fault_count: int
    worlds: list[World] = field(default_factory=list)
    moves: int = 0
    seconds: float = 0.0

    def visit(self, start: World, limit: int | None = None) -> None:
        """Every world within the faults was judged, and from each all can go well by itself.

        Raises:
            FoundError: one of them is not as it must be.
        """
        begun = time.perf_counter()
        self._numbers: dict[World, int] = {}
        self._ways: list[tuple[int, str]] = []
        self._depths: list[int] = []
        self._back: list[list[int]] = []
        self._add(start, -1, "", 0)
        layer = [0]
        for faults_left in reversed(range(self.fault_count + 1)):
            layer = self._visit_layer(layer, faults_left, limit)
        self._require_good_ends()
        self.seconds = time.perf_counter() - begun

    def _add(self, world: World, before: int, label: str, depth: int) -> int:
        number = self._numbers[world] = len(self.worlds)
        self.worlds.append(world)
        self._ways.append((before, label))
        self._depths.append(depth)
        self._back.append([])
        try:
            self.rules.judge(world)
        except (UnsafeError, InvariantViolation) as error:
            raise FoundError(self.story(number, str(error))) from error
        return number

    def _visit_layer(self, layer: list[int], faults_left: int, limit: int | None) -> list[int]:
        """Whatever is reached without a further fault; returned is what one more leads to."""
        todo = deque(sorted(layer, key=self._depths.__getitem__))
        visited: list[int] = []
        while todo:
            number = todo.popleft()
            visited.append(number)
            self._go_on(number, self.rules.free, todo, is_free=True)
            self._go_on(number, self.rules.relief, todo, is_free=False)
            if limit and len(self.worlds) > limit:
                raise AssertionError(f"more than {limit} worlds")
        return self._suffered(visited) if faults_left else []

    def _go_on(
        self,
        number: int,
        moves: Callable[[World], Moves[World]],
        todo: deque[int],
        *,
        is_free: bool,
    ) -> None:
        for label, after in self._made(number, moves(self.worlds[number])):
            known = self._numbers.get(after)
            if known is None:
                known = self._add(after, number, label, self._depths[number] + 1)
                todo.append(known)
            if is_free:
                self._back[known].append(number)

    def _suffered(self, visited: list[int]) -> list[int]:
        """What one fault leads to from these, as far as it is new."""
        later: dict[World, tuple[int, str]] = {}
        for number in visited:
            for label, after in self._made(number, self.rules.faults(self.worlds[number])):
                if after not in self._numbers:
                    later.setdefault(after, (number, label))
        return [
            self._add(world, number, label, self._depths[number] + 1)
            for world, (number, label) in later.items()
        ]

    def _made(self, number: int, moves: Moves[World]) -> Moves[World]:
        iterator = iter(moves)
        while True:
            try:
                move = next(iterator, None)
            except (UnsafeError, InvariantViolation) as error:
                raise FoundError(self.story(number, str(error))) from error
            if move is None:
                return
            self.moves += 1
            yield move

    def _require_good_ends(self) -> None:
        """Backwards from every good world, along what happens by itself, to all others."""
        good = {n for n, world in enumerate(self.worlds) if self.rules.is_well(world)}
        todo = list(good)
        while todo:
            for before in self._back[todo.pop()]:
                if before not in good:
                    good.add(before)
                    todo.append(before)
        bad = [n for n in range(len(self.worlds)) if n not in good]
        if bad:
            worst = min(bad, key=self._depths.__getitem__)
            verdict = f"from here, and {len(bad) - 1} other worlds, nothing leads to a good one"
            raise FoundError(self.story(worst, verdict))

    def story(self, number: int, verdict: str) -> str:
        """The way to this world, and what it is like."""
        labels = []
        at = number
        while at >= 0:
            before, label = self._ways[at]
            labels.append(label)
            at = before
        steps = [f"{i:3} {label}" for i, label in enumerate(reversed(labels[:-1]), 1)]
        shown = self.rules.shown(self.worlds[number])
        return "\n".join([verdict, *steps, "then", *shown])

    def stated(self) -> str:
        """What was visited, and how fast."""
        rate = len(self.worlds) / self.seconds if self.seconds else 0
        return (
            f"{len(self.worlds)} worlds, {self.moves} moves, "
            f"{self.rules.states()}, "
            f"{self.seconds:.1f} s, {rate:.0f} worlds/s"
        )
