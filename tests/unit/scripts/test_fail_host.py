"""scripts/demo --fail-host: the moments that it finds in a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from check_history.reading import Event
from flights_demo.lost_host.first_outputs import Arrivals
from flights_demo.lost_host.mixed import other_processes
from flights_demo.lost_host.timeline import (
    FIRST_OUTPUT,
    Lost,
    OwnEnd,
    first_output_ms,
    gained,
    moments,
    own_end,
    revoked_ms,
)
from flights_demo.story import is_tail
from flights_demo.tasks import active_tasks, idle_containers, is_dealt, owners_of, standby_tasks

from tests.unit.scripts.test_check_history import History

KILLED_MS = 10_000
LOST = Lost("1", 3, "1-0")


def _history(folder: Path, *facts: tuple[int, str, str, str, int]) -> list[Event]:
    """(ms, role, event, processor, epoch) of each, as the job's processes write them."""
    history = History(folder)
    for at, role, name, processor, epoch in facts:
        is_decided = name == "failover-decided"
        more = {"active": processor, "processor_id": None} if is_decided else {}
        history.event(at, role, name, (processor, epoch), "nm2", **more)
    return history.events()


def _failover() -> list[tuple[int, str, str, str, int]]:
    return [
        (9_900, "container", "transaction-committed", "1", 3),
        (13_600, "driver", "revoked", "1", 3),
        (13_610, "driver", "failover-decided", "1", 3),
        (13_700, "driver", "stop-ordered", "1-0", 2),
        (14_100, "launcher", "child-stopped", "1-0", 2),
        (14_200, "driver", "permit-granted", "1", 4),
        (14_300, "launcher", "permit-received", "1", 4),
        (14_310, "launcher", "child-started", "1", 4),
        (15_000, "container", "fenced", "1", 4),
        (15_200, "container", "restore-finished", "1", 4),
        (15_300, "container", "restore-finished", "1", 4),
        (15_400, "container", "started", "1", 4),
        (15_500, "container", "first-record", "1", 4),
        (16_500, "container", "transaction-committed", "1", 4),
        (17_500, "container", "transaction-committed", "1", 4),
    ]


def test_a_failover_is_shown_moment_by_moment(tmp_path: Path) -> None:
    """Each once, by time, from the end of the lease to the first commit; the last store counts."""
    found = moments(_history(tmp_path, *_failover()), LOST, KILLED_MS)
    assert [(moment.at_ms, moment.name) for moment in found] == [
        (13_600, "the lease has run out"),
        (13_610, "failover decided"),
        (13_700, "the standby is ordered to stop"),
        (14_100, "the standby has stopped"),
        (14_200, "successor permitted"),
        (14_300, "permit is at the launcher"),
        (14_310, "process started"),
        (15_000, "older ids fenced"),
        (15_300, "stores at their heads"),
        (15_400, "successor reports itself started"),
        (15_500, "first record"),
        (16_500, FIRST_OUTPUT),
    ]
    assert first_output_ms(found) == 16_500


def test_events_before_the_kill_and_of_others_are_not_shown(tmp_path: Path) -> None:
    """Neither the lost one's own commits, nor another processor's moments."""
    others = [
        (9_000, "driver", "stop-ordered", "1-0", 1),
        (9_500, "launcher", "child-stopped", "1-0", 1),
        (12_000, "driver", "permit-granted", "2", 9),
        (12_100, "container", "transaction-committed", "2", 9),
        (12_200, "container", "transaction-committed", "1", 3),
    ]
    assert moments(_history(tmp_path, *others), LOST, KILLED_MS) == []
    assert first_output_ms([]) is None


def test_of_several_successors_the_one_that_committed_is_shown(tmp_path: Path) -> None:
    """The epochs in between failed; until one commits, the first of them is shown."""
    failed = [
        (13_600, "driver", "revoked", "1", 3),
        (13_700, "driver", "permit-granted", "1", 4),
        (13_800, "launcher", "child-started", "1", 4),
        (14_700, "driver", "permit-granted", "1", 5),
    ]
    before = moments(_history(tmp_path, *failed), LOST, KILLED_MS)
    assert [moment.at_ms for moment in before] == [13_600, 13_700, 13_800]
    failed.append((15_000, "container", "transaction-committed", "1", 5))
    found = moments(_history(tmp_path, *failed), LOST, KILLED_MS)
    assert [moment.at_ms for moment in found] == [13_600, 14_700, 15_000]


def test_without_a_standby_there_is_none_to_stop(tmp_path: Path) -> None:
    """Whatever else stops meanwhile."""
    found = moments(_history(tmp_path, *_failover()), Lost("1", 3, None), KILLED_MS)
    assert not [moment for moment in found if "standby" in moment.name]


GAINER = Lost("0", 1, None)


def _takeover() -> list[tuple[int, str, str, str, int]]:
    return [
        (10_500, "container", "transaction-committed", "0", 1),
        (13_600, "driver", "revoked", "1", 3),
        (13_700, "driver", "stop-ordered", "0", 1),
        (13_900, "launcher", "child-stopped", "0", 1),
        (13_950, "driver", "permit-granted", "0", 2),
        (14_200, "container", "fenced", "0", 2),
        (14_300, "container", "restore-finished", "0", 2),
        (14_400, "container", "started", "0", 2),
        (14_500, "container", "transaction-committed", "0", 2),
    ]


def test_a_container_that_takes_tasks_over_lets_go_first(tmp_path: Path) -> None:
    """Its own earlier commits are none of the next incarnation."""
    found = gained(_history(tmp_path, *_takeover()), GAINER, KILLED_MS)
    assert [(moment.at_ms, moment.name) for moment in found] == [
        (13_700, "ordered to let go"),
        (13_900, "has let go"),
        (13_950, "successor permitted"),
        (14_200, "older ids fenced"),
        (14_300, "stores at their heads"),
        (14_400, "successor reports itself started"),
        (14_500, FIRST_OUTPUT),
    ]


def test_the_last_lease_that_runs_out_counts(tmp_path: Path) -> None:
    """Until all have, it is not known."""
    events = _history(tmp_path, *_takeover(), (13_800, "driver", "revoked", "2", 7))
    assert revoked_ms(events, [LOST], KILLED_MS) == 13_600
    assert revoked_ms(events, [LOST, Lost("2", 7, None)], KILLED_MS) == 13_800
    assert revoked_ms(events, [LOST, Lost("2", 8, None)], KILLED_MS) is None


def test_whoever_takes_tasks_over_has_fenced_the_lost(tmp_path: Path) -> None:
    """The earliest of the fences counts; a host that died writes nothing of its end."""
    facts = [*_takeover(), (12_000, "container", "transaction-committed", "1", 3)]
    assert own_end(_history(tmp_path, *facts), LOST, KILLED_MS, [GAINER]) is None
    stopped = (13_100, "launcher", "child-stopped", "1", 3)
    events = _history(tmp_path, *facts, stopped, (14_250, "container", "fenced", "2", 5))
    found = own_end(events, LOST, KILLED_MS, [GAINER, Lost("2", 4, None)])
    assert found == OwnEnd("None", 13_100, 12_000, 14_200)
    assert own_end(events, LOST, KILLED_MS, [LOST]) is None


def test_a_process_that_goes_on_with_the_next_incarnation_is_no_other(tmp_path: Path) -> None:
    """One that ends is, and one that begins."""
    history = History(tmp_path)
    history.event(1, "launcher", "child-stopped", ("0", 1), "nm2", rests=True)
    history.event(2, "launcher", "child-started", ("0", 2), "nm2", child_pid=70)
    history.event(3, "launcher", "child-stopped", ("0", 2), "nm2", exit_code=0)
    history.event(4, "launcher", "child-started", ("0", 3), "nm2", child_pid=71)
    found = other_processes(history.events(), {"0": 70})
    assert [(event.at, event.name) for event in found] == [
        (3, "child-stopped"),
        (4, "child-started"),
    ]
    assert other_processes(history.events()[:2], {"0": 70}) == []


def test_the_first_output_of_each_partition_since_a_moment() -> None:
    """All are known once the last partition has one."""
    arrivals = Arrivals(2)
    for partition, at_ms in ((0, 100), (0, 200), (1, 150), (0, 300)):
        arrivals.add(partition, at_ms)
    assert arrivals.first_since(100) == {0: 100, 1: 150}
    assert arrivals.first_since(151) == {0: 200}
    assert arrivals.has_all_since(150)
    assert not arrivals.has_all_since(151)


def _model(**containers: str) -> dict[str, Any]:
    """``_model(a="0 1 s2")``: container a works on two tasks, and keeps a standby of a third."""
    found = {}
    for name, words in containers.items():
        tasks = {}
        for word in words.split():
            number = word.removeprefix("s")
            is_active = number == word
            full = f"Partition {number}" if is_active else f"Standby-Partition {number}-0"
            tasks[full] = {"task-mode": "Active" if is_active else "Standby"}
        found[name] = {"tasks": tasks}
    return {"containers": found}


def test_a_model_shows_where_tasks_and_standbys_are() -> None:
    """A container may have none of either."""
    model = _model(a="0 1 s2", b="2 s0", c="")
    assert active_tasks(model) == {
        "a": {"Partition 0", "Partition 1"},
        "b": {"Partition 2"},
        "c": set(),
    }
    assert standby_tasks(model) == {"a": {"Partition 2"}, "b": {"Partition 0"}, "c": set()}
    assert owners_of(standby_tasks(model)) == {"Partition 2": "a", "Partition 0": "b"}


def test_a_mixed_container_is_idle_without_tasks_of_its_own() -> None:
    """A standby container never had any."""
    assert idle_containers(_model(a="0 1 s2", b="2 s0", c="s1")) == {"c"}
    assert idle_containers(_model(a="0 1", b="s0 s1")) == set()


@pytest.mark.parametrize(
    ("containers", "are_dealt"),
    [
        ({"a": "0 s1", "b": "1 s0"}, True),
        ({"a": "0 s1", "b": "1"}, False),
        ({"a": "0 s0", "b": "1 s1"}, False),
    ],
)
def test_standbys_are_dealt_where_each_task_has_one_elsewhere(
    containers: dict[str, str], *, are_dealt: bool
) -> None:
    """None may lack, and none may be beside its task."""
    assert is_dealt(_model(**containers)) is are_dealt


@pytest.mark.parametrize(
    ("kinds", "is_right"),
    [(["tail", "none"], True), (["none"], True), (["tail", "full"], False), ([], False)],
)
def test_only_the_tail_is_no_store_in_full(kinds: list[str], *, is_right: bool) -> None:
    """And where nothing was restored, nothing was shown."""
    assert is_tail([{"kind": kind, "records": 5} for kind in kinds]) is is_right
