"""The start of a standby container, as far as it goes without Kafka."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from small_jobs import LOGGED, environment_in, job_of, no_master

from homeport.container.host.lease_memory import NoLauncher
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import OvertakenError, StopFlag
from homeport.container.incarnation import standby_tasks, start_up
from homeport.container.incarnation.standby_tasks import StandbyContainer
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

OWN = ProcessorId("0-0")
EARLIER = (Incarnation(OWN, 3), Incarnation(ProcessorId("0"), 2))


class _Stream(InMemoryCoordinatorStream):
    """Says when it is read; by then a later permit of the standby is in it."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self._steps = steps
        EpochManager(self).write_processor_epoch(OWN, ProcessorEpoch(5, 7, ()))

    def bootstrap(self) -> None:
        self._steps.append("read")
        self.catch_up()


def test_a_standby_fences_its_list_before_it_looks_whether_it_was_overtaken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Safety I3: in this order; one that was overtaken goes no further, and writes nothing."""
    steps: list[str] = []
    stream = _Stream(steps)
    before = list(stream.log)
    monkeypatch.setattr(standby_tasks, "give_way", lambda: None)
    monkeypatch.setattr(start_up, "open_coordinator_stream", lambda _: nullcontext(stream))
    monkeypatch.setattr(start_up, "await_kafka", lambda *_: steps.append("kafka"))
    monkeypatch.setattr(start_up, "fence", lambda _, id_: steps.append(id_))
    job, permit = job_of(LOGGED, OWN), Permit(Incarnation(OWN, 4), 7, EARLIER)
    place = environment_in(tmp_path)
    container = StandbyContainer(job, permit, place, no_master(), StopFlag(), NoLauncher())
    with pytest.raises(OvertakenError, match="processor 0-0 epoch 4 was overtaken by epoch 5"):
        container.run()
    assert (steps[0], steps[-1]) == ("kafka", "read")
    assert sorted(steps[1:-1]) == sorted(job.transactional_id(i) for i in EARLIER)
    assert stream.log == before
