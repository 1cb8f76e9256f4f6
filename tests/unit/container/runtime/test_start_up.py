"""The fetch of a container's part of the JobModel while its AM comes and goes."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import UnavailableError, WireError
from homeport.container.runtime import start_up
from homeport.container.runtime.environment import Permit
from homeport.container.runtime.stop_flag import StopFlag, StopRequestedError
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel

PERMIT = Permit(Incarnation(ProcessorId("p/1"), 4), 7, ())
MODEL = JobModel(Config({"job.name": "j"}), {})


class _Client(CoordinatorClient):
    """Answers in turn; an error is raised."""

    def __init__(self, *answers: JobModel | Exception) -> None:
        super().__init__("http://127.0.0.1:1/", None)
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def processor_model(self, processor_id: ProcessorId, version: int) -> JobModel:
        self.asked.append((processor_id, version))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_up, "_AM_PAUSE_S", 0)


def test_the_part_of_the_permits_version_is_fetched() -> None:
    """Its own processor and no other, in the version that the permit names."""
    client = _Client(MODEL)
    assert start_up.fetch_job_model(client, PERMIT, StopFlag()) is MODEL
    assert client.asked == [("p/1", 7)]


def test_a_driver_that_is_being_restarted_is_waited_for() -> None:
    """No answer, or one that broke off, is asked for again."""
    client = _Client(UnavailableError("refused"), UnavailableError("broke off"), MODEL)
    assert start_up.fetch_job_model(client, PERMIT, StopFlag()) is MODEL
    assert len(client.asked) == 3


def test_an_am_that_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time that it is given, what it said last is the error."""
    monkeypatch.setattr(start_up, "_AM_PATIENCE_S", -1)
    with pytest.raises(UnavailableError, match="refused"):
        start_up.fetch_job_model(_Client(UnavailableError("refused")), PERMIT, StopFlag())


def test_a_refusal_is_final() -> None:
    """An AM that does not know processor or version is not asked again."""
    client = _Client(WireError("404"), MODEL)
    with pytest.raises(WireError):
        start_up.fetch_job_model(client, PERMIT, StopFlag())
    assert len(client.asked) == 1


def test_who_is_told_to_stop_does_not_go_on_asking() -> None:
    """SIGTERM while the AM is away ends the wait."""
    stop = StopFlag()
    stop.set()
    with pytest.raises(StopRequestedError):
        start_up.fetch_job_model(_Client(UnavailableError("refused"), MODEL), PERMIT, stop)
