"""What scenarios of failover call amiss: they would pass whatever happens if it named nothing."""

from __future__ import annotations

import re

from failover_scenarios import called_for, choices_in, told_amiss

_AM = re.compile("container_1_0001_02_000001")
_CHILD = "python -m homeport.container.incarnation.container_runner"


def test_a_launcher_has_its_child_and_one_spare() -> None:
    """A process in no container that the AM knows, or a second spare, is a stray."""
    found = {
        1: ("nm1", "container_1_0001_02_000001", "driver"),
        2: ("nm1", "container_1_0001_01_000001", "driver"),
        3: ("nm2", "container_1_0001_02_000003", "launcher"),
        4: ("nm2", "container_1_0001_02_000003", _CHILD),
        5: ("nm2", "container_1_0001_02_000003", _CHILD),
        6: ("nm2", "container_1_0001_02_000003", _CHILD),
        7: ("nm3", "container_1_0001_02_000004", _CHILD),
        8: ("nm3", "", "sleep"),
    }
    assert called_for(found, {"container_1_0001_02_000003": 5}, _AM) == {1, 3, 4, 5}


def test_reported_counts_grow_up_to_the_last_count() -> None:
    """Reported twice, too little, too much, or nothing at all of a key."""
    stated = [("key 0", 1), ("key 1", 1), ("key 0", 2), ("key 1", 2)]
    assert told_amiss(stated, 100) == {f"key {k}": [] for k in range(2, 50)}
    assert told_amiss([("key 0", 1), ("key 0", 1)], 1) == {"key 0": [1, 1]}
    assert told_amiss([("key 0", 2)], 1) == {"key 0": [2]}
    assert told_amiss([("key 0", 1), ("key 1", 1)], 1) == {"key 1": [1]}
    assert told_amiss([("key 0", 1)], 51) == {"key 0": [1]} | {f"key {k}": [] for k in range(1, 50)}


def _chosen(active: str, step: str, standby: str | None) -> dict[str, str | None]:
    return {"event": "failover-decided", "active": active, "step": step, "standby": standby}


def test_the_failovers_of_a_history_are_counted() -> None:
    """One to a standby that runs; one whose standby is lost, to none, tried twice; a second one."""
    over: dict[str, str | None] = {"event": "failover-ended", "active": "0"}
    story = [
        _chosen("0", "standby", "0-0"),
        _chosen("1", "standby-host", "1-0"),
        over,
        _chosen("1", "other-host", None),
        _chosen("1", "other-host", None),
        _chosen("0", "other-host", None),
    ]
    assert choices_in(story) == {
        "made way": 1,
        "failed over to a standby": 2,
        "choices lost": 1,
        "could not be failed to a standby": 2,
    }
