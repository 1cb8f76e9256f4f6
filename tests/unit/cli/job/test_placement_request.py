"""``homeport move`` and ``restart``: what is refused before it is written, and how is waited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from statuses import status_of

from homeport.cli.job import placement_request as module
from homeport.cli.job.job_view import JobView, RunningJob
from homeport.cli.job.placement_request import (
    Patience,
    answers,
    check,
    destination_of,
    outcome,
    write_order,
)
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError, UnansweredError, UnavailableError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
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


class Stream(InMemoryCoordinatorStream):
    """A stream of a Kafka that may be away."""

    is_away = False

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Nothing, where it is away."""
        if self.is_away:
            raise UnavailableError("Kafka at kafka:9092 did not answer")
        return super().catch_up()

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Nothing, where it is away."""
        if self.is_away:
            raise UnavailableError("Kafka at kafka:9092 did not answer")
        super().write(messages)


@dataclass
class Waiting:
    """A command that waits, on a clock of its own; each look takes ``step_s``."""

    stream: Stream
    patience: Patience
    is_answering: bool = True
    now_s: float = 0.0
    step_s: float = 5.0

    def clock(self) -> float:
        """Seconds."""
        return self.now_s

    def look(self, times: int = 1) -> None:
        """So many looks."""
        for _ in range(times):
            self.now_s += self.step_s
            self.patience()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    """A job whose Kafka and AM answer."""
    stream = Stream()
    client = SimpleNamespace(status=ShownStatus)
    made: list[Waiting] = []
    running = RunningJob(client, "application_1_2", 1)  # type: ignore[arg-type] # no server
    monkeypatch.setattr(module, "_POLL_S", 0)
    monkeypatch.setattr(module, "running_job", lambda *_: running if made[0].is_answering else None)
    job = JobView(Config(), "topic", stream, running)
    made.append(Waiting(stream, Patience(job, lambda: made[0].now_s if made else 0.0)))
    return made[0]


def test_a_kafka_that_is_away_is_waited_for(
    waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    """The order goes on in the job; the command notes that, and ends only after minutes."""
    waiting.stream.is_away = True
    waiting.look(59)
    waiting.stream.is_away = False
    waiting.look()
    waiting.stream.is_away = True
    waiting.look(59)
    (line,) = set(capsys.readouterr().err.splitlines())
    assert line == (
        "Kafka at kafka:9092 did not answer; what was ordered stays in the coordinator stream, "
        "and goes on"
    )
    with pytest.raises(UnansweredError, match="Kafka has not answered for 300 s: what was ordered"):
        waiting.look()


def test_an_am_that_is_away_is_waited_for(waiting: Waiting) -> None:
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


def test_a_status_is_asked_until_the_am_gives_one(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
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
    stream = Stream()
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
