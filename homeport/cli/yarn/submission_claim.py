"""Which of several run-jobs of one job may submit it: the first in the coordinator stream.

Each writes a claim to the next submission number and reads the stream back: its one partition puts
all claims in one order, and the first to a number has it. The others wait until that submission is
known to YARN, where the job then runs already. A run-job that died with a claim is passed over
after that time. If it only stood still, it finds a higher number before it submits; and if it got
past that too, the higher number fences it (safety A1). A command that claims a number to change the
job's records has a rank by it, which the next claim fences: it writes nothing once that is read
back, and before it writes it finds the higher number.
"""

import contextlib
from collections.abc import Callable, Iterable

from homeport.appmaster.job_model.takeover import stream_of
from homeport.config.config import Config
from homeport.config.errors import HomeportError, UnavailableError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.metadata.epochs import EpochManager, Rank, Submission

WITHDRAWN = "withdrawn"
"""In place of the application: nothing was submitted under this number, and nothing will be."""


def take_number(
    stream: CoordinatorStream,
    claim: str,
    polls: Callable[[], Iterable[None]],
    require_not_running: Callable[[], None],
    fence: Callable[[int], None],
) -> int:
    """Return the submission number that belongs to ``claim`` alone; it is in the stream.

    ``stream`` is read to its head, ``claim`` a text that no other has. ``polls`` yields for as
    long as another's submission may be under way. ``require_not_running`` raises where an
    application of the job runs. ``fence`` keeps the command of a number that is passed over from
    further records.
    """
    epochs = EpochManager(stream)
    while True:
        last = epochs.read_submission()
        if last is not None and last.application is None and _has_moved_on(stream, last, polls()):
            continue
        require_not_running()
        if epochs.read_submission() != last:
            continue  # it has read the stream on, and with it another's claim
        number = (last.number if last else 0) + 1
        epochs.write_submission(Submission(number, claim=claim))
        if _first_claim(stream, number) == claim:
            if last is not None and last.application is None:
                fence(last.number)
                stream.catch_up()
            return number


def command_rank(number: int) -> Rank:
    """Return the rank of a command: above all earlier submissions, below attempts of its own."""
    return Rank(number, "command", 0)


def fence_command(config: Config, number: int) -> None:
    """Keep the command that has claimed ``number``, if one has, from further records."""
    with stream_of(config, command_rank(number)) as other:
        other.fence()


def _has_moved_on(stream: CoordinatorStream, last: Submission, polls: Iterable[None]) -> bool:
    epochs = EpochManager(stream)
    for _ in polls:
        stream.catch_up()
        if epochs.read_submission() != last:
            return True
    return False


def _first_claim(stream: CoordinatorStream, number: int) -> str | None:
    for message in stream.catch_up():
        is_claim = message.type == MessageType.SET_SUBMISSION and not message.is_tombstone
        if is_claim and wire.number(message, "number") == number:
            return message.value("claim")
    return None


def withdraw(stream: CoordinatorStream, number: int) -> None:
    """Record that nothing is submitted under this number: the next run-job need not wait for it.

    Where another one has taken a higher number, its record stays: numbers only grow.
    """
    with contextlib.suppress(HomeportError):
        stream.catch_up()
        last = EpochManager(stream).read_submission()
        if last is None or last.number <= number:
            EpochManager(stream).write_submission(Submission(number, WITHDRAWN))


def require_newest(stream: CoordinatorStream, number: int) -> None:
    """Require that no other run-job has taken a higher number, after it waited in vain."""
    stream.catch_up()
    last = EpochManager(stream).read_submission()
    if last is not None and last.number > number:
        raise UnavailableError(
            f"submission {number} took so long that another run-job took number {last.number}: "
            "nothing was done here; ask by --operation=status"
        )
