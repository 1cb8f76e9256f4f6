"""COORD, sentence by sentence: what no test of another folder shows by itself.

The others are in ``coord.toml``.
"""

from __future__ import annotations

from tests.unit.appmaster.allocation.conftest import Machine, asks, check_in, live, model, permits


def test_no_container_starts_before_there_is_a_job_model(machine: Machine) -> None:
    """Hosts are known, and a launcher asks for work: nothing is requested, nothing permitted.

    "The Samza containers are started only after initializing the Job Coordinator from the
    Coordinator Stream."

    The JobModel is what the coordinator makes of the stream.
    """
    assert machine.feed(live("a", "b")) == ()
    machine.feed(check_in("r9", "a"))
    assert machine.permits == ()
    assert machine.feed(model({"0": "b"})) == asks(1, "b")
    assert machine.feed(check_in("r1", "b", request=1))[-1:] == permits("r1", "0", 1)
