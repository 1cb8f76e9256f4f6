"""The rules of safety, one line each; their schedules, and the mutants that remove them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.world.judges import UnsafeError
from tests.unit.world.scene import Scene
from tests.unit.world.world import World

Play = Callable[[Scene], None]
Mutant = Callable[[pytest.MonkeyPatch], None]

RULES = {
    "K1": "the head is the uncommitted end, asked after the own init, reached by an EOF",
    "K2": "only the driver writes the coordinator stream by transactions",
    "K3": "ids and names of folders of different jobs differ",
    "K4": "a catch-up succeeds when a fetch is answered, also where nothing is new",
    "A1": "a higher submission outranks, then application, then attempt; one id per rank",
    "A2": "own init, head, rank written, lower ids initialised, head again, then act",
    "A3": "a driver that hangs is restarted; beats come from long work too",
    "A4": "a new attempt expires no lease before G + L + M, but those with a set-stopped",
    "A5": "a migration takes a rank before it raises epochs, and writes under that alone",
    "A6": "no number is given twice: epochs and versions are one number space",
    "A7": "an attempt whose keys make no JobModel goes on with the inputs in force",
    "L1": "only the keeper's answer is evidence that a lease is over, for good",
    "L2": "renewals end with a higher rank, or when Kafka was not heard within G",
    "L3": "record flushed, keeper knows, then the launcher gets run; new is LATER, not NO",
    "L4": "a keeper that is new or late gives everyone L + M first",
    "L5": "when most hosts fall silent at once, the fault is taken to be here",
    "C1": "the launcher counts from sending, the AM's side from answering, plus M",
    "C2": "the child itself watches its deadline",
    "C3": "a child that does not beat is killed, and its lease renewed no more",
    "C4": "one child per epoch, and a permit takes effect after one renewal",
    "C5": "the child dies with the launcher's thread that started it",
    "C6": "a launcher that lost its lease kills its child, stays, and checks in again",
    "I1": "a permit lists every incarnation that may still write",
    "I2": "a new model raises the epochs of all that lose a task",
    "I3": "fence all, own init, head, only then restore and go on",
    "I4": "on evidence of a lost lease its id is initialised at once",
    "I5": "all sends happen at the end of a transaction",
    "I6": "committed is only what stands at one input offset",
    "I7": "a commit of unknown outcome ends the container",
    "I8": "without exactly-once, outputs are delivered before their checkpoint",
    "I9": "where a task begins is committed before its first input",
    "I10": "records of a repartition are deleted behind the own committed position alone",
    "S1": "the position is in the store itself; OFFSET says what it was before the flush",
    "S2": "a store that stood behind for longer than deletes are kept is rebuilt",
    "S3": "OFFSET beyond the changelog's end, or of another topic: rebuilt",
    "S4": "--reset-state fences everybody before topics are recreated",
    "S5": "a free lock is no evidence of a stop",
    "S6": "input positions are read from the topic that has held them, or the job does not run",
    "S7": "an input recreated is not begun, or by no position in the topic of before",
    "S8": "what a Samza job wrote behind its checkpoint is trimmed in our first transaction",
    "S9": "a task keeps its changelog partition, which is there before its JobModel",
    "P1": "a stop is what a launcher waited for, or the keeper's word; nothing else",
    "P2": "an end reported by a live NodeManager shows that the host lives",
    "P3": "an exclusion ends; silent launchers there are killed before the probe",
    "P4": "active and standby are of one size",
}


UNBUILT = {"P4": "standby containers"}
"""Rules that nothing in the product can break yet, and what they stand with."""


@dataclass(frozen=True)
class Schedule:
    """A schedule runs twice: with the rule it ends well, without it the judges find ``verdict``.

    ``removed`` takes the rule out of the product (or out of what mirrors it here), for one run.
    """

    rule: str
    play: Play
    removed: Mutant
    verdict: str
    containers: int = 1
    partitions: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    is_judged: bool = True
    """Whether the judges look at its end: counts of a deleted key or topic begin again."""

    def __str__(self) -> str:
        return f"{self.rule}-{self.play.__name__}-{self.removed.__name__}"

    def announce(self, mutant: Mutant | None = None) -> None:
        """The story, to its end.

        Raises:
            UnsafeError: the judges' verdict.
        """
        with World(self.containers, self.partitions, self.config) as world:
            if mutant is not None:
                mutant(world.patch)
            scene = Scene(world)
            self.play(scene)
            if self.is_judged:
                scene.judge()

    def tell_without_the_rule(self) -> None:
        """The same story with the rule removed ends in the verdict."""
        with pytest.raises(UnsafeError, match=self.verdict):
            self.announce(self.removed)


SCHEDULES: list[Schedule] = []
_REMOVED: dict[Play, Mutant] = {}


def schedule(
    rule: str,
    verdict: str,
    removed: Mutant | None = None,
    **world: Any,  # noqa: ANN401 - the other fields
) -> Callable[[Play], Play]:
    """The function below is a schedule of this rule; see ``Schedule``.

    ``removed``: None: as ``without`` says.
    """

    def register(play: Play) -> Play:
        SCHEDULES.append(Schedule(rule, play, removed or _REMOVED[play], verdict, **world))
        return play

    return register


def without(target: object, name: str, value: object) -> Callable[[Play], Play]:
    """The rule is taken out where this of the product is something else."""

    def remove(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(target, name, value)

    def register(play: Play) -> Play:
        remove.__name__ = f"without-{name}"
        _REMOVED[play] = remove
        return play

    return register
