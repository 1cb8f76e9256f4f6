"""The child of a standalone processor and its parent, by the memory that they share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import OvertakenError, StopFlag, StopRequestedError
from homeport.container.incarnation.coordinators import ProcessorCoordinator
from homeport.container.incarnation.environment import Environment
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport, epoch_floor_message
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

OWN = Incarnation(ProcessorId("p"), 7)
PERMIT = Permit(OWN, 9, (Incarnation(ProcessorId("q"), 3),), '{"config":{}}')


def test_a_child_goes_on_when_its_processor_has_confirmed_it() -> None:
    """It says that it has fenced; then the stream has its report, and not before."""
    memory = LeaseMemory.endless(0)
    stream, stop = InMemoryCoordinatorStream(), StopFlag()
    child = ProcessorCoordinator(memory, {"a": "b"}, stop)
    stop.set()
    with pytest.raises(StopRequestedError):  # no processor has confirmed it
        child.confirm(stream, PERMIT)
    assert memory.fenced == 7
    stream.catch_up()
    assert EpochManager(stream).read_fenced() == {}
    memory.confirmed = 6  # an incarnation before it
    with pytest.raises(StopRequestedError):
        child.confirm(stream, PERMIT)
    memory.confirmed = 7
    child.confirm(stream, PERMIT)  # and has read it back
    assert EpochManager(stream).read_fenced() == {"p": FenceReport(7, PERMIT.fence)}
    assert child.config() == {"a": "b"}
    os.close(memory.fd)


def test_a_child_whose_job_goes_on_in_another_folder_ends() -> None:
    """After its own report, so that the other folder fences it in any case."""
    for tree, other in (("own", "other"), ("", "other"), ("own", "own"), ("own", "")):
        memory, stream = LeaseMemory.endless(0), InMemoryCoordinatorStream()
        stream.write([epoch_floor_message(6, other)])
        memory.confirmed = 7
        child = ProcessorCoordinator(memory, {}, StopFlag(), tree)
        if other in {"", tree}:
            child.confirm(stream, PERMIT)
        else:
            with pytest.raises(OvertakenError, match="goes on in another folder"):
                child.confirm(stream, PERMIT)
        assert EpochManager(stream).read_fenced() == {"p": FenceReport(7, PERMIT.fence)}
        os.close(memory.fd)


def test_a_child_says_that_it_has_started() -> None:
    """In the memory, and in its history."""
    memory = LeaseMemory.endless(0)
    said: list[object] = []
    child = ProcessorCoordinator(memory, {}, StopFlag())
    assert child.keeps_locality
    child.report_started(
        Started(OWN, {}, {"total": 1.5}),
        lambda name, **fields: said.append((name, fields)),
        StopFlag(),
    )
    assert memory.started == 7
    assert said == [("started", {"seconds": {"total": 1.5}})]
    os.close(memory.fd)


def test_a_permit_may_hold_the_job_model() -> None:
    """Of a launcher's child it does not, and its text is as it was."""
    assert Permit.from_json(PERMIT.to_json()) == PERMIT
    plain = Permit(OWN, 9, ())
    assert "model" not in plain.to_json().replace("model_version", "")
    assert Permit.from_json(plain.to_json()) == plain


def test_a_child_lives_where_its_processor_says(tmp_path: Path) -> None:
    """Its location is left as it is written; its own folder is not the working directory."""
    given = {"HOMEPORT_LOCATION_ID": "Rack 1", "HOMEPORT_WORK_DIR": "/w"}
    made = Environment.of_processor(given, tmp_path)
    assert (made.host, made.work_dir, made.logged_store_base_dir) == ("Rack 1", Path("/w"), None)
    assert Environment.of_processor({}, tmp_path).work_dir == tmp_path
