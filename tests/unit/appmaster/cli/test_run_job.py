"""What run-job says of an application that has ended."""

from __future__ import annotations

from homeport.appmaster.cli.run_job import end_of
from homeport.appmaster.yarn.resource_manager_rest import Application


def ended(diagnostics: str) -> Application:
    """A failed application."""
    return Application("application_1_1", "a_1", "FINISHED", "FAILED", diagnostics, "", "", 0)


def test_short_diagnostics_are_one_line_in_full() -> None:
    """Line breaks of YARN become spaces."""
    assert end_of(ended("processor 1 failed\n  twice\n")) == (
        "application_1_1 ended as UnsuccessfulFinish (FAILED): processor 1 failed twice"
    )
    assert end_of(ended("")) == "application_1_1 ended as UnsuccessfulFinish (FAILED)"


def test_of_a_log_in_the_diagnostics_the_error_stays() -> None:
    """The last line of a failed container's log is its error; what is before is in the log."""
    log = "\n".join(f"line {n}" for n in range(20))
    assert end_of(ended(f"processor 1 failed\non nm2\n{log}\nerror: why")) == (
        "application_1_1 ended as UnsuccessfulFinish (FAILED): "
        "processor 1 failed on nm2 ... error: why"
    )
