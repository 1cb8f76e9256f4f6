"""Of several run-jobs of one job one submits it, whatever their steps look like in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.yarn.submission_claim import WITHDRAWN, require_newest, take_number, withdraw
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.metadata.epochs import EpochManager, Submission


class _Kafka:
    """One log that several run-jobs read and write."""

    def __init__(self) -> None:
        self._log: list[tuple[bytes, bytes | None]] = []

    def stream(self) -> InMemoryCoordinatorStream:
        made = InMemoryCoordinatorStream()
        made.log = self._log
        made.catch_up()
        return made

    def write(self, submission: Submission) -> None:
        EpochManager(self.stream()).write_submission(submission)

    def read(self) -> Submission | None:
        return EpochManager(self.stream()).read_submission()


def _nobody_runs() -> None:
    """YARN knows no application of the job."""


def _unfenced(number: int) -> None:
    pytest.fail(f"nothing of {number} is passed over")


def _running() -> None:
    raise ConfigError("job.name", "j", "it runs already", "stop it")


def _polls(*steps: Callable[[], None]) -> Callable[[], Iterator[None]]:
    def made() -> Iterator[None]:
        for step in steps:
            step()
            yield

    return made


def test_the_first_submission_is_number_one() -> None:
    """And the next has the next number; both are in the stream with their claims."""
    kafka = _Kafka()
    assert take_number(kafka.stream(), "a", _polls(), _nobody_runs, _unfenced) == 1
    assert kafka.read() == Submission(1, claim="a")
    kafka.write(Submission(1, "application_1_0001"))
    assert take_number(kafka.stream(), "b", _polls(), _nobody_runs, _unfenced) == 2


def test_the_first_of_two_claims_to_one_number_wins() -> None:
    """The other waits for it, and is refused once YARN knows the application."""
    kafka = _Kafka()
    late = kafka.stream()
    is_submitted = False

    def other_is_quicker() -> None:
        if not is_submitted:
            kafka.write(Submission(1, claim="quick"))

    def other_submits() -> None:
        nonlocal is_submitted
        is_submitted = True
        kafka.write(Submission(1, "application_1_0001"))

    def require_not_running() -> None:
        other_is_quicker()
        if is_submitted:
            _running()

    with pytest.raises(ConfigError, match="runs already"):
        take_number(late, "late", _polls(other_submits), require_not_running, _unfenced)


def test_a_claim_whose_holder_died_is_passed_over() -> None:
    """After waiting in vain the next number is taken, and the old holder, if it wakes, sees it."""
    kafka = _Kafka()
    kafka.write(Submission(1, claim="dead"))
    sleeper = kafka.stream()
    done: list[object] = []

    def fence(number: int) -> None:
        done.append((number, kafka.read()))

    own = kafka.stream()
    polls = _polls(lambda: done.append("waited"))
    assert take_number(own, "b", polls, _nobody_runs, fence) == 2
    assert done == ["waited", (1, Submission(2, claim="b"))]
    with pytest.raises(UnavailableError, match="another run-job took number 2"):
        require_newest(sleeper, 1)
    require_newest(kafka.stream(), 2)
    withdraw(sleeper, 1)
    assert kafka.read() == Submission(2, claim="b")
    withdraw(sleeper, 2)
    assert kafka.read() == Submission(2, WITHDRAWN)


def test_a_submission_that_was_given_up_is_not_waited_for() -> None:
    """A run-job that failed or was interrupted has said so."""
    kafka = _Kafka()
    kafka.write(Submission(1, WITHDRAWN, claim="a"))

    def unwanted() -> None:
        pytest.fail("nothing is to be waited for")

    assert take_number(kafka.stream(), "b", _polls(unwanted), _nobody_runs, _unfenced) == 2


def test_a_third_that_claims_meanwhile_is_waited_for_too() -> None:
    """What is seen after a wait is judged again."""
    kafka = _Kafka()
    kafka.write(Submission(1, claim="dead"))
    steps: Iterator[Callable[[], None]] = iter(
        [
            lambda: kafka.write(Submission(2, claim="third")),
            lambda: kafka.write(Submission(2, "application_1_0002")),
        ]
    )

    def made() -> Iterator[None]:
        next(steps)()
        yield

    assert take_number(kafka.stream(), "b", made, _nobody_runs, _unfenced) == 3


def test_a_claim_that_the_look_for_a_running_job_reads_is_no_free_number() -> None:
    """A command that is at rest reads the stream on; the number there is another's."""
    kafka = _Kafka()
    own = kafka.stream()
    steps: Iterator[Callable[[], None]] = iter(
        [lambda: kafka.write(Submission(1, claim="quick")), _nobody_runs]
    )

    def look() -> None:
        next(steps)()
        own.catch_up()

    polls = _polls(lambda: kafka.write(Submission(1, "application_1_0001")))
    assert take_number(own, "late", polls, look, _unfenced) == 2
