"""What YARN is told of a job's end."""

from __future__ import annotations

from homeport.appmaster.yarn.skein_resource_manager import shortened


def test_long_diagnostics_keep_what_happened_and_the_error() -> None:
    """The first words are the allocator's story, the last ones the error; the middle may go."""
    told = shortened("processor 0 failed 3 times\n" + "x" * 20_000 + "\nValueError: 7")
    assert len(told) <= 8000
    assert told.startswith("processor 0 failed 3 times\n")
    assert "\n...\n" in told
    assert told.endswith("ValueError: 7")
    assert shortened("shut down on request") == "shut down on request"
