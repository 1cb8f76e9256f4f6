"""Then nothing more comes: no processor waits for ever without a reason on its page.

Each partner of a processor falls silent at every point: ZooKeeper, the processor itself, its work,
what a leader computes. From each world the times that run out, and people that do what the pages
name, lead to one where all that live work. Without one of the times, or of the words, a world is
found from which nothing does.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from homeport.job_coordinator.standalone import waits
from homeport.job_coordinator.standalone.protocol import ProcessorTimerKind
from homeport.job_coordinator.standalone.state import ProcessorDraft
from tests.exhaustive.search import FoundError, Search
from tests.exhaustive.standalone import silent
from tests.exhaustive.standalone.silent import KAFKA, STILL, WORK, ZOOKEEPER, SilentWorld
from tests.exhaustive.standalone.things import World

Announce = Callable[[str], None]
Patch = pytest.MonkeyPatch
ALL = (STILL, WORK, ZOOKEEPER, KAFKA)
IN_A_JOB = (STILL, WORK, KAFKA)


def searched(
    ids: str, partners: tuple[str, ...], faults: int, *kinds: str, is_settled: bool = True
) -> Search[World]:
    """Every world within so many faults is safe, and leads to a good one."""
    rules = SilentWorld(tuple(ids), faults=frozenset(kinds))
    rules.partners = partners
    search: Search[World] = Search(rules, faults)
    search.visit(rules.settled() if is_settled else rules.begun())
    return search


@pytest.mark.parametrize(
    ("ids", "partners", "faults", "kinds", "is_settled"),
    [
        ("p", ALL, 2, ("may_stop",), False),
        ("pq", (ZOOKEEPER,), 1, (), True),
        ("pq", (STILL,), 1, (), False),
        ("pq", (WORK, KAFKA), 1, (), False),
        ("pqr", IN_A_JOB, 2, ("may_die",), True),
        ("pq", IN_A_JOB, 2, ("may_die", "may_stop"), True),
    ],
)
def test_no_processor_waits_for_ever_without_a_word(
    ids: str,
    partners: tuple[str, ...],
    faults: int,
    kinds: tuple[str, ...],
    is_settled: bool,  # noqa: FBT001 - a parameter of pytest's
    announce: Announce,
) -> None:
    """With a second fault the partner is silent within what the first one sets off."""
    search = searched(ids, partners, faults, *kinds, is_settled=is_settled)
    announce(search.stated())
    assert len(search.worlds) > 1_000


def _without_timer(patch: Patch, kind: ProcessorTimerKind) -> None:
    """This timer is not set."""
    set_timer = ProcessorDraft.set_timer

    def mutated(draft: ProcessorDraft, timer: ProcessorTimerKind, version: int = 0) -> None:
        if timer is not kind:
            set_timer(draft, timer, version)

    patch.setattr(ProcessorDraft, "set_timer", mutated)


@pytest.mark.parametrize(
    ("kind", "partner", "is_settled"),
    [
        (ProcessorTimerKind.SESSION, ZOOKEEPER, True),
        (ProcessorTimerKind.BARRIER, WORK, False),
        (ProcessorTimerKind.BARRIER, STILL, False),
        (ProcessorTimerKind.DEBOUNCE, STILL, False),
    ],
)
def test_without_a_timer_a_processor_waits_for_ever(
    kind: ProcessorTimerKind,
    partner: str,
    is_settled: bool,  # noqa: FBT001 - a parameter of pytest's
    monkeypatch: Patch,
) -> None:
    """Each, with the partner whose silence it ends."""
    rules = SilentWorld(("p", "q"), faults=frozenset())
    rules.partners = (partner,)
    start = rules.settled() if is_settled else rules.begun()
    _without_timer(monkeypatch, kind)
    with pytest.raises(FoundError, match="nothing leads to a good one"):
        Search(rules, 1).visit(start)


@pytest.mark.parametrize("partner", [STILL, KAFKA])
def test_without_its_words_a_version_that_is_due_is_waited_for_for_ever(
    partner: str, monkeypatch: Patch
) -> None:
    """One that was not joined is named, one that leads was not."""
    monkeypatch.setattr(waits, "_next_version", lambda _state: iter(()))
    with pytest.raises(FoundError, match="nothing leads to a good one"):
        searched("pqr", (partner,), 2, "may_die")


def test_a_page_that_does_not_name_the_leader_helps_no_one(monkeypatch: Patch) -> None:
    """It stands still, and its own state is from before."""
    monkeypatch.setattr(waits, "_leader", lambda _state: "a processor")
    with pytest.raises(FoundError, match="nothing leads to a good one"):
        searched("pqr", (STILL,), 2, "may_die")


def test_a_page_that_does_not_name_who_is_missing_helps_no_one(monkeypatch: Patch) -> None:
    """The members of a barrier that is open wait for those that have not joined."""
    monkeypatch.setattr(waits, "change", lambda _state: None)
    with pytest.raises(FoundError, match="nothing leads to a good one"):
        searched("pq", (WORK,), 1, is_settled=False)


def test_a_processor_that_has_not_seen_its_barrier_says_so(monkeypatch: Patch) -> None:
    """It has joined a version that is in force for the others."""
    said, shown = waits.waits, "for ZooKeeper to show"
    monkeypatch.setattr(
        silent, "waits", lambda state: (t for t in said(state) if not t.startswith(shown))
    )
    with pytest.raises(FoundError, match="nothing leads to a good one"):
        searched("pq", (STILL,), 1, is_settled=False)
