"""``homeport drain``: which containers leave, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.config.errors import ConfigError
from homeport.job_coordinator.cli.drain_command import (
    changed_hosts,
    moves,
    note_master,
    require_host,
    require_places,
)
from homeport.job_coordinator.model.ids import Host

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


STATUS: dict[str, Any] = {
    "hosts": ["nm1"],
    "containers": [
        container("1-0", "nm1"),
        container("0", "nm1"),
        container("2", "nm1", phase="finished"),
        container("3-warm", "nm1", is_temporary=True),
        container("4", "nm2"),
        container("5", None),
    ],
}


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
def test_the_host_of_the_am_is_named(
    job: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The AM stays; one of an earlier version does not say where it is."""
    note_master(NM1, {"job": job})
    said = capsys.readouterr().err
    assert ("the ApplicationMaster runs on nm1, and stays there" in said) is (
        job == {"host": "nm1"}
    )


@pytest.mark.parametrize("shortage", [None, "waiting for 1 container"])
def test_all_must_have_a_place(shortage: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    """By what-if; or it is forced."""
    require_places(NM1, {"unplaced": [], "shortage": None}, is_forced=False)
    answer = {"unplaced": ["0", "1"], "shortage": shortage}
    rule = "the other hosts have no place for processor 0, 1"
    with pytest.raises(ConfigError, match=rule):
        require_places(NM1, answer, is_forced=False)
    require_places(NM1, answer, is_forced=True)
    assert rule in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "is_drained", "after"),
    [
        ((), True, "nm1"),
        (("NM2",), True, "nm1,nm2"),
        (("nm1", "nm2"), False, "nm2"),
        (("nm1",), False, None),
    ],
)
def test_the_key_lists_the_drained_hosts(
    before: tuple[str, ...], after: str | None, *, is_drained: bool
) -> None:
    """In one spelling; without any it goes."""
    assert changed_hosts(before, NM1, is_drained=is_drained) == after
