"""The fetch of a container's part of the JobModel while its AM comes and goes."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import HomeportError, UnavailableError, WireError
from homeport.container.runtime import start_up
from homeport.container.runtime.environment import Permit
from homeport.container.runtime.stop_flag import OvertakenError, StopFlag, StopRequestedError
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.metadata.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch
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


class _Refusing(CoordinatorClient):
    """Refuses the report of a start."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1/", None)

    def started(self, message: Started) -> None:
        raise WireError(f"the start of {message.incarnation}: 413 Request Entity Too Large")


def test_a_report_that_is_refused_costs_no_start() -> None:
    """The refusal says nothing of the container, which goes on; its history has the start."""
    told: list[str] = []
    message = Started(PERMIT.incarnation, {}, {"total": 1.0})
    start_up.report_started(_Refusing(), message, lambda event, **_: told.append(event), StopFlag())
    assert told == ["started"]


def _knows(*permits: tuple[int, int]) -> InMemoryCoordinatorStream:
    """A stream with permits of the processor, each (epoch, JobModel version)."""
    stream = InMemoryCoordinatorStream()
    for epoch, version in permits:
        record = ProcessorEpoch(epoch, version, ())
        EpochManager(stream).write_processor_epoch(PERMIT.incarnation.processor_id, record)
    stream.catch_up()
    return stream


def test_the_newest_permit_is_used_and_one_that_was_overtaken_is_not() -> None:
    """Whatever raised the epoch: another permit, or a JobModel that has the processor no more."""
    start_up.require_newest(_knows((3, 7), (4, 7)), PERMIT)
    for version in (7, 8):
        with pytest.raises(OvertakenError, match="processor p/1 epoch 4 was overtaken by epoch 5"):
            start_up.require_newest(_knows((4, 7), (5, version)), PERMIT)


@pytest.mark.parametrize(
    ("known", "said"),
    [((), "knows no permit .* none"), ((3, 7), "only epoch 3"), ((4, 6), "names JobModel 7")],
)
def test_a_permit_that_the_stream_does_not_know_is_a_failure(
    known: tuple[int, int] | tuple[()], said: str
) -> None:
    """Nobody was overtaken: what no record allows must not go unseen."""
    stream = _knows(known) if known else _knows()
    with pytest.raises(HomeportError, match=said) as caught:
        start_up.require_newest(stream, PERMIT)
    assert not isinstance(caught.value, OvertakenError)
