"""What the driver shows of its decisions."""

from __future__ import annotations

from pathlib import Path

from check_history.reading import values_in

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import initial_state
from homeport.appmaster.allocation.protocol.events import LauncherCheckedIn
from homeport.appmaster.allocation.protocol.instructions import PrepareProcess
from homeport.appmaster.lease.launcher_table import LauncherTable
from homeport.appmaster.report.decision_log import DecisionLog
from homeport.appmaster.report.step import Step
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from tests.unit.appmaster.allocation.conftest import SETTINGS

_STATE = initial_state(SETTINGS)


def _prepares(processor: str) -> Step:
    """A launcher checks in, and gets the order to make a process ready."""
    resource = ResourceId(f"r{processor}")
    order = PrepareProcess(resource, ProcessorId(processor), cause=f"cause {processor}")
    checked_in = LauncherCheckedIn(resource, Host("nm1"), None)
    return Step(_STATE, checked_in, Decision(_STATE, (), (order,)), 0)


def test_an_order_that_each_check_in_repeats_is_shown_once(tmp_path: Path) -> None:
    """A process takes a while to get ready, and its launcher checks in several times a second."""
    history = HistoryWriter(tmp_path, "driver", "nm1", 64)
    log = DecisionLog(history, LauncherTable(1000, 0))
    for processor in ("3", "3", "4", "3", "4"):
        log.decided(_prepares(processor))
    history.close()
    (file,) = tmp_path.glob("*-events-*.jsonl")
    shown = [values["instructions"] for values in values_in(file)]
    assert shown == [["PrepareProcess r3"], ["PrepareProcess r4"]]
