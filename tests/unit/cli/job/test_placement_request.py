"""``homeport move``, ``restart``, ``drain``: what is refused before a record; how is waited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs
from statuses import outlook_of, status_of
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.job import drain_command, move_command, placement_request
from homeport.cli.job import placement_request as module
from homeport.cli.job.drain_command import require_places
from homeport.cli.job.job_view import JobView, RunningJob
from homeport.cli.job.placement_request import (
    Patience,
    answers,
    check,
    destination_of,
    is_there,
    outcome,
    write_order,
)
from homeport.cli.options import NamedJob
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError, UnansweredError, UnavailableError
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.epochs import EpochManager, Submission
from homeport.job_coordinator.metadata.lifecycle import JobEnd, JobEndManager
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    CANCEL,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementRequest,
    PlacementResponse,
    PlacementStatus,
)
from homeport.job_coordinator.status.shape import ShownStatus

STATUS: dict[str, Any] = {
    "containers": [{"processor_id": "0"}, {"processor_id": "0-0"}],
    "hosts": ["nm1", "nm2", "nm3"],
    "excluded_hosts": ["nm3"],
}
REQUEST = PlacementRequest("u", "application_1_2", ProcessorId("0"), "nm2", None, 1)
GOES_ON = PlacementResponse(REQUEST, PlacementStatus.IN_PROGRESS, "one moment", 1)
DONE = PlacementResponse(replace(REQUEST, timestamp_ms=2), PlacementStatus.SUCCEEDED, "there", 2)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("any", ANY_HOST), ("last-seen", LAST_SEEN), ("Any", ANY_HOST), (" NM2 ", "nm2")],
)
def test_hosts_and_words(typed: str, meant: str) -> None:
    """Two words stand for hosts; names are in the one spelling."""
    assert destination_of(typed) == meant


@pytest.mark.parametrize("to", ["nm1", ANY_HOST, LAST_SEEN, FORCE_RESTART_LAST_SEEN])
def test_a_known_host_may_be_requested(to: str) -> None:
    """A live host and the words of the protocol; any host, while none is known."""
    check(status_of(STATUS), "0-0", to)
    check(status_of({**STATUS, "hosts": []}), "0", "nm9")


@pytest.mark.parametrize(
    ("processor", "to", "line"),
    [
        ("9", "nm1", "PROCESSOR = '9': the job has none of that id; there are 0, 0-0"),
        ("0", "nm9", "HOST = 'nm9': it is no live host of the cluster; there are nm1, nm2, nm3"),
        ("0", "nm3", "HOST = 'nm3': it has fallen silent and is not asked; try another"),
    ],
)
def test_an_unknown_processor_or_host_is_refused_before_a_record_is_written(
    processor: str, to: str, line: str
) -> None:
    """One line with what there is."""
    with pytest.raises(ConfigError) as refused:
        check(status_of(STATUS), processor, to)
    assert str(refused.value).startswith(line)


def test_a_move_to_where_a_container_runs_is_none() -> None:
    """A command that is typed twice costs no pause; words, moves under way and starts count."""

    def there(to: str = "nm1", phase: str = "running", **changes: object) -> bool:
        containers = [{"processor_id": "0", "host": "nm1", "phase": phase}, {"processor_id": "1"}]
        return is_there(status_of({**STATUS, "containers": containers, **changes}), "0", to)

    assert there()
    assert there(placements=[{"processor_id": "1"}])
    assert not there("nm2")
    assert not there(LAST_SEEN)
    assert not there(phase="starting")
    assert not there(placements=[{"processor_id": "0"}])


def test_an_error_names_only_some_of_many_processors() -> None:
    """It stays one line."""
    many = {**STATUS, "containers": [{"processor_id": str(n)} for n in range(1000)]}
    with pytest.raises(ConfigError, match=r"18, 19 and 980 more$"):
        check(status_of(many), "x", ANY_HOST)


def test_every_answer_is_printed_once_up_to_the_last() -> None:
    """Others' answers are not."""
    stream = InMemoryCoordinatorStream()
    other = replace(DONE, request=replace(REQUEST, uuid="other"))
    coming = [[other], [GOES_ON], [], [DONE]]

    def patience() -> None:
        stream.write(map(PlacementManager.response_message, coming.pop(0)))
        stream.catch_up()

    assert list(answers(stream, "u", patience)) == [GOES_ON, DONE]


def test_waiting_ends_when_patience_does() -> None:
    """As when the AM does not answer for long."""

    def patience() -> None:
        raise UnavailableError("no server there")

    with pytest.raises(UnavailableError):
        list(answers(InMemoryCoordinatorStream(), "u", patience))


class _Stream(InMemoryCoordinatorStream):
    is_away = False

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        if self.is_away:
            raise UnavailableError("Kafka at kafka:9092 did not answer")
        return super().catch_up()

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        if self.is_away:
            raise UnavailableError("Kafka at kafka:9092 did not answer")
        super().write(messages)


@dataclass
class _Waiting:
    """A command that waits, on a clock of its own; each look takes ``step_s``."""

    stream: _Stream
    patience: Patience
    is_answering: bool = True
    now_s: float = 0.0
    step_s: float = 5.0

    def clock(self) -> float:
        return self.now_s

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.now_s += self.step_s
            self.patience()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> _Waiting:
    """A job whose Kafka and AM answer."""
    stream = _Stream()
    EpochManager(stream).write_submission(Submission(7, "application_1_2"))
    stream.catch_up()
    client = SimpleNamespace(status=ShownStatus)
    made: list[_Waiting] = []
    running = RunningJob(client, "application_1_2", 1)  # type: ignore[arg-type] # no server
    monkeypatch.setattr(module, "_POLL_S", 0)
    monkeypatch.setattr(module, "running_job", lambda *_: running if made[0].is_answering else None)
    given = Config({"job.name": "j", "job.default.system": "kafka"})
    job = JobView(given, "topic", stream, running)
    made.append(_Waiting(stream, Patience(job, lambda: made[0].now_s if made else 0.0)))
    return made[0]


def test_a_kafka_that_is_away_is_waited_for(
    waiting: _Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    """The order goes on in the job; the command notes that, and ends only after minutes."""
    waiting.stream.is_away = True
    waiting.look(59)
    waiting.stream.is_away = False
    waiting.look()
    waiting.stream.is_away = True
    waiting.look(59)
    line = (
        "Kafka at kafka:9092 did not answer; what was ordered stays in the coordinator stream, "
        "and goes on"
    )
    assert capsys.readouterr().err.splitlines() == [line] * 2  # once for each time it is away
    with pytest.raises(UnansweredError, match="Kafka has not answered for 300 s: what was ordered"):
        waiting.look()


def test_an_am_that_is_away_is_waited_for(waiting: _Waiting) -> None:
    """YARN's next attempt takes a minute or two; what it then does is in the stream."""
    waiting.look(10)
    waiting.is_answering = False
    waiting.look(58)
    waiting.is_answering = True
    waiting.look(2)
    assert waiting.patience.status() == ShownStatus()
    waiting.is_answering = False
    with pytest.raises(UnansweredError, match="the AM has not answered for 300 s"):
        waiting.look(62)


def test_an_order_ends_with_its_job(waiting: _Waiting) -> None:
    """No answer will come: the command has read the stream by then."""
    waiting.look()
    ended = JobEnd(7, "FAILED", "processor 0 failed 9 times")
    waiting.stream.write([JobEndManager.message(ended)])
    waiting.look()
    with pytest.raises(HomeportError) as raised:
        waiting.look()
    assert str(raised.value) == (
        "j-1: ended, application_1_2, FAILED: processor 0 failed 9 times; what was ordered ends "
        "with it"
    )


def test_an_order_ends_where_a_next_run_has_deleted_its_answer(waiting: _Waiting) -> None:
    """As for a command that slept meanwhile: the AM that answers now is another one."""
    done, gone = PlacementManager.response_message(DONE), PlacementManager.response_deleted("u")
    waiting.stream.write([done, JobEndManager.message(JobEnd(7, "SUCCEEDED"))])
    EpochManager(waiting.stream).write_submission(Submission(8, "application_1_3"))
    waiting.stream.write([gone])
    with pytest.raises(HomeportError, match="another submission has begun: what was ordered ended"):
        waiting.look(2)
    assert PlacementManager(waiting.stream).read_responses() == {}


def test_a_status_is_asked_until_the_am_gives_one(
    waiting: _Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may die between two questions."""
    answers_: list[UnavailableError | ShownStatus] = [UnavailableError("gone"), ShownStatus()]

    def status() -> ShownStatus:
        answer = answers_.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    client = SimpleNamespace(status=status)
    monkeypatch.setattr(module, "running_job", lambda *_: RunningJob(client, "a", 1))  # type: ignore[arg-type] # no server
    assert waiting.patience.status() == ShownStatus()


def test_an_order_that_kafka_may_have_is_no_plain_failure() -> None:
    """It may be carried out: the operator looks before giving it again."""
    stream = _Stream()
    request = PlacementManager.request_message(REQUEST)
    write_order(stream, [request])
    stream.is_away = True
    with pytest.raises(UnansweredError, match="whether the order is in the coordinator stream"):
        write_order(stream, [request])


def test_a_good_answer_is_a_line_and_every_other_an_error() -> None:
    """Which ends the program with 1."""
    assert outcome(DONE) == "SUCCEEDED: there"
    for status in (PlacementStatus.FAILED, PlacementStatus.BAD_REQUEST):
        with pytest.raises(HomeportError, match=f"^{status}: there$"):
            outcome(replace(DONE, status=status))


JOB = NamedJob("my.properties", None)


@pytest.mark.parametrize(
    ("host", "options"),
    [
        (None, {}),
        ("nm2", {"cancel": True}),
        (None, {"cancel": True, "warm": True}),
        (None, {"cancel": True, "expiry_ms": 5}),
    ],
)
def test_a_move_has_a_host_or_is_a_cancel(host: str | None, options: dict[str, bool]) -> None:
    """One of the two; a cancel has nothing else to say."""
    with pytest.raises(ConfigError, match="give a host, or --cancel alone"):
        move_command.move(processor="0", host=host, job=JOB, **options)


def test_a_cancel_is_a_request_without_a_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the place of the host stands a word of its own."""
    asked: list[tuple[str, str]] = []
    file = tmp_path / "my.properties"
    file.write_text("job.name=j", encoding="utf-8")
    job = NamedJob(str(file), None)
    monkeypatch.setattr(
        placement_request,
        "ask",
        lambda _, processor, destination, **__: asked.append((processor, destination)),
    )
    move_command.move(processor="0", host=None, job=job, cancel=True)
    move_command.move(processor="0", host="ANY", job=job)
    assert asked == [("0", CANCEL), ("0", "ANY_HOST")]


NM1 = Host("nm1")


def test_all_must_have_a_place_or_it_is_forced(capsys: pytest.CaptureFixture[str]) -> None:
    """By what-if; what has none is named either way."""
    require_places(NM1, outlook_of(NM1), is_forced=False)
    answer = structs.replace(outlook_of(NM1), unplaced=(ProcessorId("0"), ProcessorId("1")))
    rule = "the other hosts have no place for processor 0, 1"
    with pytest.raises(ConfigError, match=rule):
        require_places(NM1, answer, is_forced=False)
    require_places(NM1, answer, is_forced=True)
    assert rule in capsys.readouterr().err


class _Wait:
    pauses = 0

    def __call__(self) -> None:
        self.pauses += 1

    def status(self) -> ShownStatus:
        return ShownStatus()


def test_a_key_that_the_job_does_not_take_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another operator may have taken the drain back at once."""
    looks = iter(range(0, 200_000, 20_000))
    monkeypatch.setattr(drain_command, "boot_ms", lambda: next(looks))
    wait = _Wait()
    with pytest.raises(UnavailableError, match=r"has not taken cluster-manager\.drained\.hosts"):
        drain_command._await_taken(NM1, cast("Patience", wait))
    assert wait.pauses == 3
