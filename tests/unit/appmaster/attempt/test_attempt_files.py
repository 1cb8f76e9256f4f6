"""What a driver leaves for the next one of its attempt."""

from __future__ import annotations

from pathlib import Path

from homeport.appmaster.attempt.attempt_files import StartedLedger, inheritance
from homeport.appmaster.attempt.inherited import Inheritance
from homeport.appmaster.yarn.skein_resource_manager import RequestLedger
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.model.ids import ProcessorId, RequestId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind


def test_the_ledger_gives_back_what_was_added(tmp_path: Path) -> None:
    """In a new process too; a line that is not whole is ignored."""
    assert RequestLedger(tmp_path).read() == {}
    RequestLedger(tmp_path).add("h-0_0", RequestId(1))
    RequestLedger(tmp_path).add("h-1_0", RequestId(7))
    with (tmp_path / "requests").open("a") as file:
        file.write("h-2_0 ")
    assert RequestLedger(tmp_path).read() == {"h-0_0": RequestId(1), "h-1_0": RequestId(7)}


def test_reports_of_starts_come_back(tmp_path: Path) -> None:
    """In a new process too; a line that is not whole is ignored."""
    assert StartedLedger(tmp_path).read() == ()
    incarnation = Incarnation(ProcessorId("0"), 3)
    counts = {"Partition 0": Restored(RestoreKind.TAIL, 4, 9, 6)}
    reports = (
        Started(Incarnation(ProcessorId("1"), 1), {}, {"restore": 0.5}),
        Started(incarnation, {"counts": counts}, {}),
    )
    for report in reports:
        StartedLedger(tmp_path).add(report)
    with (tmp_path / "started.jsonl").open("a") as file:
        file.write('{"processor_id"')
    assert StartedLedger(tmp_path).read() == reports


def test_the_findings_of_the_first_driver_hold_for_the_attempt(tmp_path: Path) -> None:
    """A later one, which finds permits of its own attempt too, waits for the same as long."""
    zero, one = ProcessorId("0"), ProcessorId("1")
    first = Inheritance(1000, {Incarnation(zero, 3): 42_000, Incarnation(one, 1): 4000})
    assert inheritance(tmp_path, first) == first
    later = Inheritance(9000, {Incarnation(zero, 4): 1000})
    assert inheritance(tmp_path, later) == first
