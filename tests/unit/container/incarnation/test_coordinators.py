"""What an incarnation and its coordinator exchange: the AM, or the parent of a child."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError, UnavailableError, WireError
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import OvertakenError, StopFlag, StopRequestedError
from homeport.container.incarnation import coordinators
from homeport.container.incarnation.coordinators import ApplicationMaster, ProcessorCoordinator
from homeport.container.incarnation.environment import Environment
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    epoch_floor_message,
)
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel

OWN = Incarnation(ProcessorId("p"), 7)
PERMIT = Permit(OWN, 9, (Incarnation(ProcessorId("q"), 3),), '{"config":{}}')


def test_a_child_goes_on_when_its_processor_has_confirmed_it() -> None:
    """It says that it has fenced; then the stream has its report, and not before."""
    memory = LeaseMemory.endless()
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
        memory, stream = LeaseMemory.endless(), InMemoryCoordinatorStream()
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


def test_a_child_does_not_go_on_while_its_jobs_state_is_changed() -> None:
    """The command that began since its first look fences what has reported; this one had not."""
    memory, stream = LeaseMemory.endless(), InMemoryCoordinatorStream()
    memory.confirmed = 7
    command = InMemoryCoordinatorStream(log=stream.log)
    StateResetManager(command).write(StateReset(1, ResetPhase.CONVERTING))
    with pytest.raises(ConfigError, match="a conversion of a store's values was begun and not"):
        ProcessorCoordinator(memory, {}, StopFlag()).confirm(stream, PERMIT)
    assert EpochManager(stream).read_fenced() == {"p": FenceReport(7, PERMIT.fence)}
    os.close(memory.fd)


def test_a_child_says_that_it_has_started() -> None:
    """In the memory, from which its processor reads it."""
    memory = LeaseMemory.endless()
    ProcessorCoordinator(memory, {}, StopFlag()).report_started(Started(OWN, {}, {"total": 1.5}))
    assert memory.started == 7
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
    made = Environment.of(given, tmp_path)
    assert (made.host, made.work_dir, made.logged_store_base_dir) == ("Rack 1", Path("/w"), None)
    assert Environment.of({}, tmp_path).work_dir == tmp_path


AM_PERMIT = Permit(Incarnation(ProcessorId("p/1"), 4), 7, ())
MODEL = JobModel(Config({"job.name": "j"}), {})


class _Client(CoordinatorClient):
    """Answers in turn; an error is raised."""

    def __init__(self, *answers: JobModel | Exception) -> None:
        super().__init__("http://127.0.0.1:1/", None)
        self.answers = list(answers)
        self.asked: list[object] = []

    def processor_model(self, processor_id: ProcessorId, version: int) -> JobModel:
        return self._answer((processor_id, version))

    def started(self, message: Started) -> None:
        self._answer(message)

    def _answer(self, question: object) -> JobModel:
        self.asked.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "_AM_PAUSE_S", 0)


OWN_VERSION = (AM_PERMIT.incarnation.processor_id, AM_PERMIT.model_version)
STARTED = Started(AM_PERMIT.incarnation, {}, {"total": 1.0})


def _fetch(client: CoordinatorClient, stop: StopFlag) -> None:
    assert ApplicationMaster(client, stop).job_model(*OWN_VERSION) is MODEL


def _report(client: CoordinatorClient, stop: StopFlag) -> None:
    ApplicationMaster(client, stop).report_started(STARTED)


_Ask = Callable[[CoordinatorClient, StopFlag], None]
_EACH = pytest.mark.parametrize(
    ("ask", "question"), [(_fetch, ("p/1", 7)), (_report, STARTED)], ids=["fetch", "report"]
)


@_EACH
def test_a_driver_that_is_being_restarted_is_waited_for(ask: _Ask, question: object) -> None:
    """The request is repeated after no answer, or one that broke off, and not after an answer.

    It is for its own processor and no other, in the version that the permit names.
    """
    client = _Client(UnavailableError("refused"), UnavailableError("broke off"), MODEL)
    ask(client, StopFlag())
    assert client.asked == [question] * 3


@_EACH
def test_an_am_that_stays_away_is_reported(
    ask: _Ask, question: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time that it is given, what it said last is the error."""
    monkeypatch.setattr(coordinators, "_AM_PATIENCE_S", -1)
    client = _Client(UnavailableError("refused"), MODEL)
    with pytest.raises(UnavailableError, match="refused"):
        ask(client, StopFlag())
    assert client.asked == [question]


@_EACH
def test_a_container_that_is_ordered_to_stop_repeats_no_request(
    ask: _Ask, question: object
) -> None:
    """SIGTERM while the AM is away ends the wait."""
    stop, client = StopFlag(), _Client(UnavailableError("refused"), MODEL)
    stop.set()
    with pytest.raises(StopRequestedError):
        ask(client, stop)
    assert client.asked == [question]


def test_a_refusal_is_final() -> None:
    """An AM that does not know processor or version is not asked again."""
    client = _Client(WireError("404"), MODEL)
    with pytest.raises(WireError):
        _fetch(client, StopFlag())
    assert len(client.asked) == 1


def test_a_report_that_is_refused_costs_no_start() -> None:
    """The refusal says nothing of the container, which goes on."""
    client = _Client(WireError("413 Request Entity Too Large"))
    _report(client, StopFlag())
    assert client.asked == [STARTED]


def _knows(*permits: tuple[int, int]) -> InMemoryCoordinatorStream:
    """A stream with permits of the processor, each (epoch, JobModel version)."""
    stream = InMemoryCoordinatorStream()
    for epoch, version in permits:
        record = ProcessorEpoch(epoch, version, ())
        write_permit(EpochManager(stream), AM_PERMIT.incarnation.processor_id, record)
    stream.catch_up()
    return stream


def test_the_newest_permit_is_used_and_an_overtaken_one_is_not() -> None:
    """Whatever raised the epoch: another permit, or a JobModel that has the processor no more."""
    coordinators.require_newest(_knows((3, 7), (4, 7)), AM_PERMIT)
    for version in (7, 8):
        with pytest.raises(OvertakenError, match="processor p/1 epoch 4 was overtaken by epoch 5"):
            coordinators.require_newest(_knows((4, 7), (5, version)), AM_PERMIT)


@pytest.mark.parametrize(
    ("known", "expected"),
    [((), "knows no permit .* none"), ((3, 7), "only epoch 3"), ((4, 6), "names JobModel 7")],
)
def test_a_permit_that_the_stream_does_not_know_is_a_failure(
    known: tuple[int, int] | tuple[()], expected: str
) -> None:
    """No incarnation was overtaken: what no record allows must not go unseen."""
    stream = _knows(known) if known else _knows()
    with pytest.raises(HomeportError, match=expected) as caught:
        coordinators.require_newest(stream, AM_PERMIT)
    assert not isinstance(caught.value, OvertakenError)
