"""scripts/demo --fail-host: the moments that it finds in a history."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_history.reading import Event
from flights_demo.story import is_tail
from flights_demo.timeline import FIRST_OUTPUT, Lost, first_output_ms, moments

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


@pytest.mark.parametrize(
    ("kinds", "is_right"),
    [(["tail", "none"], True), (["none"], True), (["tail", "full"], False), ([], False)],
)
def test_only_the_tail_is_no_store_in_full(kinds: list[str], *, is_right: bool) -> None:
    """And where nothing was restored, nothing was shown."""
    assert is_tail([{"kind": kind, "records": 5} for kind in kinds]) is is_right
