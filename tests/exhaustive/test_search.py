"""Small clusters, searched exhaustively: every order of events, with every fault at every point.

The last lines of a run say how many worlds were visited, and how fast. ``--faults 3`` and
``--hosts 4`` search further out, for many minutes. Hosts are equal, so that a job has one
beginning; which of two equal hosts is taken is decided by name. So two worlds that differ in the
names of their hosts alone are both visited: what follows from one is not, host for host, what
follows from the other, and to take them for one would leave worlds out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.exhaustive.search import Search
from tests.exhaustive.small_world import SmallWorld

Tell = Callable[[str], None]
Groups = Mapping[str, tuple[str, ...]]

ONE: Groups = {"0": ()}
TWO: Groups = {"0": (), "1": ()}
PAIR: Groups = {"0": ("0-0",)}
TWO_STANDBYS: Groups = {"0": ("0-0", "0-1")}
TWO_PAIRS: Groups = {"0": ("0-0",), "1": ("1-0",)}


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """As many as ``--hosts`` says."""
    return tuple("abcdefgh"[: request.config.getoption("--hosts")])


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> int:
    """As many as ``--faults`` says."""
    count: int = request.config.getoption("--faults")
    return count


@pytest.mark.parametrize(("groups", "fewer"), [(ONE, 0), (PAIR, 1), (TWO_STANDBYS, 1)], ids=str)
def test_a_job_is_safe_and_heals_from_its_submission_on(
    groups: Groups, fewer: int, hosts: tuple[str, ...], faults: int, tell: Tell
) -> None:
    """Each fault comes at every point of the first deployment, and of all that follows."""
    rules = SmallWorld(groups, hosts)
    search = Search(rules, faults - fewer)
    search.visit(rules.deployed())
    tell(search.told())
    assert len(search.worlds) > 500


@pytest.mark.parametrize(("groups", "fewer"), [(ONE, 0), (TWO, 1), (PAIR, 1)], ids=str)
def test_slowness_is_no_fault(
    groups: Groups, fewer: int, hosts: tuple[str, ...], faults: int, tell: Tell
) -> None:
    """In the fine grain."""
    rules = SmallWorld(groups, hosts, is_fine=True)
    search = Search(rules, faults - fewer)
    search.visit(rules.deployed())
    tell(search.told())
    assert len(search.worlds) > 500


def test_an_active_with_two_standbys_is_safe_and_heals(
    hosts: tuple[str, ...], faults: int, tell: Tell
) -> None:
    """All run; then the faults come: failovers, and failures in failovers."""
    rules = SmallWorld(TWO_STANDBYS, hosts)
    search = Search(rules, faults)
    search.visit(rules.settled())
    tell(search.told())
    assert len(search.worlds) > 5_000


def test_two_pairs_are_safe_and_heal(hosts: tuple[str, ...], faults: int, tell: Tell) -> None:
    """All run; then one fault less comes, and the pairs are in each other's way."""
    rules = SmallWorld(TWO_PAIRS, hosts)
    search = Search(rules, faults - 1)
    search.visit(rules.settled())
    tell(search.told())
    assert len(search.worlds) > 300


def test_two_pairs_with_all_faults_are_safe_and_heal(
    hosts: tuple[str, ...], faults: int, tell: Tell
) -> None:
    """The same with no fault less, of children, hosts and the driver: no message is late."""
    rules = SmallWorld(TWO_PAIRS, hosts, is_in_time=True)
    search = Search(rules, faults)
    search.visit(rules.settled())
    tell(search.told())
    assert len(search.worlds) > 10_000
