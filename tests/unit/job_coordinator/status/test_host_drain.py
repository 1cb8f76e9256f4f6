"""How the containers of a host leave it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from statuses import outlook_of, status_of

from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import PlacementStatus
from homeport.job_coordinator.status.host_drain import (
    HostDrain,
    am_stays,
    host_change,
    left_on_drained_hosts,
    moves,
    not_taken,
    require_host,
    without_place,
)

NM1, NM2 = Host("nm1"), Host("nm2")


def container(processor: str, host: str | None, **facts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A row of the status."""
    return {
        "processor_id": processor,
        "host": host,
        "role": "standby" if "-" in processor else "active",
        "phase": "running",
        "is_temporary": False,
        **facts,
    }


BODY: dict[str, Any] = {
    "hosts": ["nm1"],
    "drained_hosts": ["nm1", "nm3"],
    "containers": [
        container("1-0", "nm1"),
        container("0", "nm1"),
        container("2", "nm1", phase="finished"),
        container("3-warm", "nm1", is_temporary=True),
        container("4", "nm2"),
        container("5", None),
    ],
}
STATUS = status_of(BODY)


def test_actives_leave_first_and_warm() -> None:
    """What has ended, or is there for a move, is not moved."""
    assert moves(NM1, STATUS) == [("0", True), ("1-0", False)]


def test_a_host_must_be_known() -> None:
    """Live, or one with a container."""
    require_host(NM1, STATUS)
    require_host(NM2, STATUS)
    with pytest.raises(ConfigError, match=r"HOST = 'nm9': .* there are nm1, nm2"):
        require_host(Host("nm9"), STATUS)


@pytest.mark.parametrize("job", [{"host": "nm1"}, {"host": "nm2"}, {"host": ""}, {}])
def test_the_host_of_the_am_is_named(job: dict[str, str]) -> None:
    """The AM stays; one of an earlier version does not say where it is."""
    found = am_stays(NM1, status_of({"job": job}))
    assert ("the ApplicationMaster runs on nm1, and stays" in str(found)) is (
        job == {"host": "nm1"}
    )


@pytest.mark.parametrize(
    ("shortage", "more"), [(None, ""), ("waiting for 1 container", ": waiting for 1 container")]
)
def test_all_must_have_a_place(shortage: str | None, more: str) -> None:
    """By what-if, which says what is in the way."""
    all_placed = replace(outlook_of(NM1), shortage=shortage)
    assert without_place(all_placed) is None
    answer = replace(all_placed, unplaced=(ProcessorId("0"), ProcessorId("1")))
    assert without_place(answer) == f"the other hosts have no place for processor 0, 1{more}"


def test_it_is_over_when_all_have_left() -> None:
    """What has left meanwhile is not moved again."""
    drain = HostDrain(NM1)
    assert drain.next_moves(STATUS) == [("0", True), ("1-0", False)]
    drain.answered(ProcessorId("0"), PlacementStatus.SUCCEEDED, "0@2 runs on nm2")
    drain.answered(ProcessorId("1-0"), PlacementStatus.SUCCEEDED, "1-0@2 runs on nm3")
    left = status_of({**BODY, "containers": [container("0", "nm2"), container("1-0", "nm3")]})
    assert drain.next_moves(left) == []
    assert drain.fault(left) is None
    assert drain.done() == "nm1 has no container of the job"


def test_a_move_that_fails_is_tried_three_times() -> None:
    """Then it is said what has stayed, and why."""
    drain = HostDrain(NM1)
    status = status_of({**BODY, "containers": [container("0", "nm1"), container("1", "nm1")]})
    for _ in range(3):
        assert [processor for processor, _ in drain.next_moves(status)] == ["0", "1"]
        drain.answered(ProcessorId("0"), PlacementStatus.FAILED, "its launcher was lost")
        drain.answered(ProcessorId("1"), PlacementStatus.SUCCEEDED, "1@2 runs on nm2")
    assert drain.next_moves(status) == []
    assert drain.fault(status) == (
        "nm1 still has processor 0, 1 (0: its launcher was lost); it gets no other container; "
        "homeport drain nm1 goes on, --undo takes it back"
    )


def test_a_drain_that_is_taken_back_moves_nothing_more() -> None:
    """It names what stays; where all have left before, it is done."""
    drain = HostDrain(NM1)
    assert drain.next_moves(STATUS) != []
    undone = status_of({**BODY, "drained_hosts": []})
    assert drain.next_moves(undone) == []
    assert drain.fault(undone) == "the drain of nm1 was taken back: processor 0, 1-0 stays"
    assert drain.fault(replace(undone, containers=())) is None


def test_a_key_that_is_not_taken_is_named() -> None:
    """With the limit, and where to look."""
    message = str(not_taken("cluster-manager.drained.hosts"))
    assert message.startswith(
        "the running job has not taken cluster-manager.drained.hosts in 60000"
    )


def test_what_stands_on_drained_hosts_is_named() -> None:
    """With both ways out; a host without containers is not."""
    assert list(left_on_drained_hosts(STATUS)) == [
        (
            "nm1 is drained and has processor 0, 1-0, which restarts there: "
            "homeport drain nm1 moves what is left, --undo takes the drain back"
        )
    ]
    assert list(left_on_drained_hosts(status_of({}))) == []


@pytest.mark.parametrize(
    ("before", "is_drained", "after"),
    [
        ((), True, ("nm1",)),
        (("NM2",), True, ("NM2", "nm1")),
        (("NM1",), True, ("NM1",)),
        (("nm1", "nm2"), False, ("nm2",)),
        (("NM1", "nm1"), False, ()),
        (("nm2",), False, ("nm2",)),
    ],
)
def test_the_key_lists_the_drained_hosts(
    before: tuple[str, ...], after: tuple[str, ...], *, is_drained: bool
) -> None:
    """In any spelling; what others have written there stays as it is."""
    assert host_change(before, NM1, is_drained=is_drained).of(before) == after
