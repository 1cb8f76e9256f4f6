"""Small clusters, searched exhaustively: every order of events, with every fault at every point.

The last lines of a run say how many worlds were visited, and how fast. ``--faults 3`` and
``--hosts 4`` search further out, for many minutes. Hosts are equal, so that a job has one
beginning; which of two equal hosts is taken is decided by name. So two worlds that differ in the
names of their hosts alone are both visited: what follows from one is not, host for host, what
follows from the other, and to take them for one would leave worlds out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from suites import long

from homeport.appmaster.allocation.job_state.state import Preparation
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.placement import FORCE_RESTART_LAST_SEEN
from tests.exhaustive.job import REPORTS, SETTINGS
from tests.exhaustive.people import READ, WARM, Assignment, People
from tests.exhaustive.search import Search
from tests.exhaustive.small_world import SmallWorld

Announce = Callable[[str], None]
Groups = Mapping[str, tuple[str, ...]]

ONE: Groups = {"0": ()}
TWO: Groups = {"0": (), "1": ()}
PAIR: Groups = {"0": ("0-0",)}
TWO_STANDBYS: Groups = {"0": ("0-0", "0-1")}
TWO_PAIRS: Groups = {"0": ("0-0",), "1": ("1-0",)}

TOGETHER: Assignment = {"0": "0", "1": "0"}
SPREAD: Assignment = {"0": "0", "1": "1"}
SWAPPED: Assignment = {"0": "1", "1": "0"}
MOVED: Assignment = {"0": "1"}
ACTIVES: Assignment = {"0": "0"}
WITH_STANDBY: Assignment = {"0": "0", "0-0": "0-0"}
GROWN: Assignment = {"0": "0", "new": "0"}
GROWN_BESIDE: Assignment = {"0": "0", "new": "1"}
GAINED_BY_0: Assignment = {"0": "0", "1": "1", "new": "0"}
GAINED_BY_1: Assignment = {"0": "0", "1": "1", "new": "1"}
READS_MORE: Assignment = {"0": "0", "0-0": "0-0", f"{READ}more": ""}
AB = ("a", "b")
BACKS_OFF = replace(SETTINGS, retry_count=1, launch_retry_ms=1000, last_retry_delay_ms=5000)
CAUSES = ("failed", "signalled", "finished", "cut-off", "no-package")


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """As many as ``--hosts`` says."""
    return tuple("abcdefgh"[: request.config.getoption("--hosts")])


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> int:
    """As many as ``--faults`` says."""
    count: int = request.config.getoption("--faults")
    return count


def searched(
    rules: SmallWorld, faults: int, announce: Announce, *, is_settled: bool = False
) -> int:
    """How many worlds are within so many faults: all are safe, and all can go well."""
    search = Search(rules, faults)
    search.visit(rules.settled() if is_settled else rules.deployed())
    announce(search.stated())
    return len(search.worlds)


@pytest.mark.parametrize(("groups", "fewer"), [(ONE, 0), (PAIR, 1), (TWO_STANDBYS, 1)], ids=str)
def test_a_job_is_safe_and_heals_from_its_submission_on(
    groups: Groups, fewer: int, hosts: tuple[str, ...], faults: int, announce: Announce
) -> None:
    """Each fault comes at every point of the first deployment, and of all that follows."""
    rules = SmallWorld(groups, hosts)
    assert searched(rules, faults - fewer, announce) > 500


def test_a_host_joins_at_any_step(faults: int, announce: Announce) -> None:
    """It is a home like any other: what has no place elsewhere starts there, and comes back."""
    rules = SmallWorld(PAIR, AB)
    search = Search(rules, faults - 1)
    search.visit(rules.deployed(absent=("b",)))
    announce(search.stated())
    assert len(search.worlds) > 500


@pytest.mark.parametrize(("groups", "fewer"), [(ONE, 0), (TWO, 1), (PAIR, 1)], ids=str)
def test_slowness_is_no_fault(
    groups: Groups, fewer: int, hosts: tuple[str, ...], faults: int, announce: Announce
) -> None:
    """In the fine grain."""
    rules = SmallWorld(groups, hosts, is_fine=True)
    assert searched(rules, faults - fewer, announce) > 500


def test_an_active_with_a_standby_is_safe_and_heals(faults: int, announce: Announce) -> None:
    """On two hosts all run; then the faults come: failovers, and failures in failovers."""
    rules = SmallWorld(PAIR, AB, is_in_time=True)
    assert searched(rules, faults, announce, is_settled=True) > 3_000


@pytest.mark.long
def test_an_active_with_two_standbys_is_safe_and_heals(
    hosts: tuple[str, ...], faults: int, announce: Announce
) -> None:
    """The same with a choice of standbys, and messages that are late."""
    rules = SmallWorld(TWO_STANDBYS, hosts)
    assert searched(rules, faults, announce, is_settled=True) > 5_000


def test_two_pairs_are_safe_and_heal(
    hosts: tuple[str, ...], faults: int, announce: Announce
) -> None:
    """All run; then one fault less comes, and the pairs are in each other's way."""
    rules = SmallWorld(TWO_PAIRS, hosts)
    assert searched(rules, faults - 1, announce, is_settled=True) > 300


@pytest.mark.long
def test_two_pairs_with_all_faults_are_safe_and_heal(
    hosts: tuple[str, ...], faults: int, announce: Announce
) -> None:
    """The same with no fault less, of children, hosts and the driver: no message is late."""
    rules = SmallWorld(TWO_PAIRS, hosts, is_in_time=True)
    assert searched(rules, faults, announce, is_settled=True) > 10_000


@pytest.mark.parametrize(("groups", "count"), [(ONE, 2), (TWO, 1), (PAIR, 1)], ids=str)
def test_a_job_that_is_shut_down_at_any_time_ends(
    groups: Groups, count: int, announce: Announce
) -> None:
    """On two hosts; the shutdown is one of the faults, and nothing of the job runs when it ends."""
    rules = SmallWorld(groups, AB, people=People(may_shut_down=True))
    assert searched(rules, count, announce) > 500


def test_a_container_may_end_for_every_cause(announce: Announce) -> None:
    """It fails, is killed by a signal, comes to its end, is cut off, or has no package."""
    rules = SmallWorld(ONE, AB, people=People(may_shut_down=True))
    rules.causes = CAUSES
    assert searched(rules, 2, announce) > 500


@pytest.mark.parametrize("retry_count", [0, 1])
def test_failures_are_counted_and_rested_from(retry_count: int, announce: Announce) -> None:
    """Failed launches rest, and so does the last retry; the job fails for failures only."""
    settings = replace(BACKS_OFF, retry_count=retry_count)
    assert searched(SmallWorld(ONE, AB, settings), 2, announce) > 500


@pytest.mark.parametrize(
    "plan", [(TOGETHER, SPREAD), (SWAPPED, TOGETHER), (TOGETHER, SWAPPED)], ids=str
)
def test_a_model_may_change_at_any_point_of_a_change(
    plan: tuple[Assignment, ...], announce: Announce
) -> None:
    """Tasks have one owner, and the processors of the last model run its tasks in the end."""
    rules = SmallWorld(TWO, AB, people=People(plan), is_fine=True)
    assert searched(rules, 0, announce) > 400


@pytest.mark.parametrize(
    ("groups", "plan", "faults"),
    [
        (ONE, (GROWN, GROWN_BESIDE), 1),
        (TWO, (GAINED_BY_0, GAINED_BY_1), 0),
        (TWO, (SWAPPED,), 0),
        long(TWO, (GAINED_BY_0, GAINED_BY_1), 1),
    ],
    ids=str,
)
def test_a_container_works_on_until_others_can_have_its_tasks(
    groups: Groups, plan: tuple[Assignment, ...], faults: int, announce: Announce
) -> None:
    """Another one is new, or runs: owners let go, processes rest and die, and all begin again.

    That no process is ever reported ready holds tasks up where they are, and not for good.
    """
    rules = SmallWorld(groups, AB, people=People(plan), is_in_time=True)
    rules.partners = (REPORTS,)
    search = Search(rules, faults)
    search.visit(rules.settled())
    announce(search.stated())
    assert [w for w in search.worlds if any(x.has_resting for x in w.launchers)]
    if faults:
        everybody = [c for s in rules.memory.states for c in s.containers]
        assert [c for c in everybody if c.preparation is Preparation.ORDERED]
        assert [w for w in search.worlds if w.silent and w.version == 3 and rules.is_well(w)]


def test_a_task_may_move_to_another_processor_with_a_fault_at_any_time(announce: Announce) -> None:
    """From 0, which is retired, to 1, which is new; drivers die and the job is shut down too."""
    rules = SmallWorld(ONE, AB, people=People((MOVED,), may_shut_down=True), is_fine=True)
    assert searched(rules, 1, announce) > 5_000


@pytest.mark.parametrize(
    ("groups", "plan"),
    [
        (ONE, ({"0": "0", f"{READ}more": ""}, ACTIVES)),
        (PAIR, (READS_MORE,)),
        long(PAIR, (READS_MORE, WITH_STANDBY)),
    ],
    ids=str,
)
def test_an_input_may_come_and_go_with_a_fault_at_any_time(
    groups: Groups, plan: tuple[Assignment, ...], announce: Announce
) -> None:
    """All tasks read it with the next version; their containers restart, standbys too."""
    rules = SmallWorld(groups, AB, people=People(plan))
    assert searched(rules, 1, announce, is_settled=True) > 800


@pytest.mark.parametrize(
    "plan",
    [(GROWN,), (GROWN_BESIDE,), (GROWN_BESIDE, ACTIVES), long((GROWN_BESIDE, ACTIVES, GROWN))],
    ids=str,
)
def test_a_task_may_come_and_go_with_a_fault_at_any_time(
    plan: tuple[Assignment, ...], announce: Announce
) -> None:
    """To the processor that runs, or to one of its own; and back to the other one.

    That its changelog partition is there first is an order of the shell's, which the world plays:
    ``tests/unit/world/test_inputs.py`` kills the driver at each of its steps.
    """
    rules = SmallWorld(ONE, AB, people=People(plan))
    assert searched(rules, 1, announce) > 500


def test_standbys_may_be_switched_off_and_on_with_a_fault_at_any_time(announce: Announce) -> None:
    """The pair runs; its standby is retired, and comes back."""
    rules = SmallWorld(PAIR, AB, people=People((ACTIVES, WITH_STANDBY)))
    assert searched(rules, 1, announce, is_settled=True) > 1_000


def test_a_command_may_come_at_any_time_with_a_fault_at_any_time(announce: Announce) -> None:
    """A move and a restart: each has one final answer, also after the death of the driver."""
    people = People(commands=(("0", "b"), ("0", FORCE_RESTART_LAST_SEEN)))
    assert searched(SmallWorld(ONE, AB, people=people), 2, announce) > 3_000


@pytest.mark.parametrize(("count", "faults"), [(2, 2), long(2, 3), long(3, 2)], ids=str)
def test_a_warm_move_is_safe_and_heals(
    hosts: tuple[str, ...], announce: Announce, count: int, faults: int
) -> None:
    """An active without a standby; the command is one of the faults, another comes at any time.

    ``count``: of the hosts.
    """
    people = People(commands=(("0", f"{WARM}b"),))
    rules = SmallWorld(ONE, hosts[:count], people=people)
    assert searched(rules, faults, announce, is_settled=True) > 1_000


def test_a_warm_move_that_awaits_a_spark_is_safe_and_heals(announce: Announce) -> None:
    """It comes, or its time is over; the command is one of two faults, which come at any time."""
    settings = replace(SETTINGS, temporary_have_spark=True)
    people = People(commands=(("0", f"{WARM}b"),))
    rules = SmallWorld(ONE, AB, settings, people=people)
    assert searched(rules, 2, announce, is_settled=True) > 1_000


def test_a_warm_move_of_a_mixed_container_is_safe_and_heals(announce: Announce) -> None:
    """The process of what has read its state rests for it; two faults, the command is one."""
    settings = replace(SETTINGS, mixes_roles=True)
    people = People(commands=(("0", f"{WARM}b"),))
    rules = SmallWorld(ONE, AB, settings, people=people, is_in_time=True)
    assert searched(rules, 2, announce, is_settled=True) > 1_000


@pytest.mark.parametrize(("faults", "least"), [(1, 50), long(2, 1_000)], ids=["one", "two"])
def test_a_lost_mixed_container_waits_for_its_home_and_heals(
    announce: Announce, faults: int, least: int
) -> None:
    """Its only other host has a container; faults come at any time."""
    settings = replace(SETTINGS, mixes_roles=True)
    rules = SmallWorld(TWO, AB, settings, is_in_time=True)
    assert searched(rules, faults, announce, is_settled=True) > least


def test_no_child_begins_on_a_drained_host(announce: Announce) -> None:
    """With a fault, or a command to go to any host, at any time; it can always go well."""
    settings = replace(SETTINGS, drained_hosts=frozenset({Host("b")}))
    people = People(commands=(("0", f"{WARM}ANY_HOST"),))
    rules = SmallWorld(ONE, ("a", "b", "c"), settings, people=people)
    search = Search(rules, 1)
    search.visit(rules.deployed())
    announce(search.stated())
    assert not [x for w in search.worlds for x in w.launchers if x.child and x.host == "b"]
    assert len(search.worlds) > 100


@pytest.mark.parametrize(("count", "faults"), [(2, 2), long(3, 2)], ids=str)
def test_a_warm_move_of_a_pair_is_safe_and_heals(
    hosts: tuple[str, ...], announce: Announce, count: int, faults: int
) -> None:
    """To the host of its standby, or to another, in and after a failover too."""
    people = People(commands=(("0", f"{WARM}b"), ("0", f"{WARM}c")))
    rules = SmallWorld(PAIR, hosts[:count], people=people, is_in_time=True)
    assert searched(rules, faults, announce, is_settled=True) > 1_000


@pytest.mark.parametrize(("count", "least"), [(2, 3_000), long(3, 5_000)], ids=["two", "all"])
def test_commands_to_a_pair_are_safe_in_failovers_too(
    hosts: tuple[str, ...], announce: Announce, count: int, least: int
) -> None:
    """The active or the standby is moved or restarted before, in and after a failover.

    ``count``: of the hosts.
    """
    commands = (("0", "ANY_HOST"), ("0-0", "b"), ("0", FORCE_RESTART_LAST_SEEN))
    rules = SmallWorld(PAIR, hosts[:count], people=People(commands=commands), is_in_time=True)
    assert searched(rules, 2, announce, is_settled=True) > least


@pytest.mark.long
@pytest.mark.parametrize("planned", [TOGETHER, SWAPPED], ids=str)
def test_a_change_may_meet_a_fault_at_any_point(planned: Assignment, announce: Announce) -> None:
    """Two processors: the driver dies, or something else goes wrong, before, in or after it."""
    rules = SmallWorld(TWO, AB, people=People((planned,)))
    assert searched(rules, 1, announce) > 5_000


@pytest.mark.long
def test_standbys_may_be_switched_off_and_on_with_two_faults(announce: Announce) -> None:
    """A driver that finds a retired standby has it in its group again afterwards."""
    rules = SmallWorld(PAIR, AB, people=People((ACTIVES, WITH_STANDBY)))
    assert searched(rules, 2, announce, is_settled=True) > 50_000


@pytest.mark.long
def test_all_that_people_do_may_meet_another_fault(announce: Announce) -> None:
    """A task moves; the container is moved, restarted or shut down; two faults at any time."""
    commands = (("0", "b"), ("0", FORCE_RESTART_LAST_SEEN))
    rules = SmallWorld(ONE, AB, people=People((MOVED,), commands, may_shut_down=True))
    rules.causes = CAUSES
    assert searched(rules, 2, announce) > 10_000


def test_calm_alone_brings_every_processor_home(announce: Announce) -> None:
    """Without faults, in every order of events: each runs on the host that has its state."""
    homes = {"0": "b", "1": "a"}
    rules = SmallWorld(TWO, ("a", "b", "c"), homes=homes)
    search = Search(rules, 0)
    search.visit(rules.deployed())
    announce(search.stated())
    ends = [w for w in search.worlds if search.rules.is_well(w)]
    for world in ends:
        assert {x.child.owner[0]: x.host for x in world.launchers if x.child} == homes
        assert dict(world.stream.homes) == homes
    assert ends


def test_commands_alone_are_carried_out_in_their_order() -> None:
    """Without faults: to each destination in turn, with a stop before each start."""
    commands = tuple(("0", to) for to in ("c", "b", "c", FORCE_RESTART_LAST_SEEN))
    people, homes = People(commands=commands), {"0": "a", "1": "b"}
    rules = SmallWorld(TWO, ("a", "b", "c"), homes=homes, people=people)
    world = rules.settled()
    for processor, to in commands:
        world = rules.commanded(world, processor, to)
    places = ["a"]
    while world.stream.commands or not rules.is_well(world):
        _, world = next(rules.free(world))
        found = {x.child.owner[0]: x.host for x in world.launchers if x.child}
        assert found["1"] == "b"
        if places[-1] != found.get("0", ""):
            places.append(found.get("0", ""))
    assert places == ["a", "", "c", "", "b", "", "c", "", "c"]


def test_calm_alone_brings_every_replica_to_a_host_of_its_own() -> None:
    """No fault: two pairs on two hosts; actives come home first."""
    homes = {"0": "a", "1": "b", "1-0": "b"}
    world = SmallWorld(TWO_PAIRS, AB, homes=homes).settled()
    placed = {x.child.owner[0]: x.host for x in world.launchers if x.child}
    assert placed == {"0": "a", "0-0": "b", "1": "b", "1-0": "a"}
