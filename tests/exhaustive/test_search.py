"""Small clusters, searched exhaustively: every order of events, with every fault at every point."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.exhaustive.search import Search
from tests.exhaustive.small_world import SmallWorld

Tell = Callable[[str], None]
HOSTS = ("a", "b", "c")


def test_one_active_within_two_faults_is_safe_and_heals(tell: Tell) -> None:
    """From the submission on, on two hosts."""
    rules = SmallWorld({"0": ()}, ("a", "b"))
    search = Search(rules, 2)
    search.visit(rules.deployed())
    tell(search.told())
    assert len(search.worlds) > 1000


def test_two_actives_within_one_fault_are_safe_and_heal_in_every_order(tell: Tell) -> None:
    """In the fine grain: to be slow is no fault."""
    rules = SmallWorld({"0": (), "1": ()}, HOSTS, is_fine=True)
    search = Search(rules, 1)
    search.visit(rules.deployed())
    tell(search.told())
    assert len(search.worlds) > 1000


@pytest.mark.long
def test_two_actives_within_two_faults_are_safe_and_heal(tell: Tell) -> None:
    """From the submission on."""
    rules = SmallWorld({"0": (), "1": ()}, HOSTS)
    search = Search(rules, 2)
    search.visit(rules.deployed())
    tell(search.told())
    assert len(search.worlds) > 10_000
