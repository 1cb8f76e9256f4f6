"""How an AM attempt takes a job over: its rank, and what earlier attempts have left.

Order (safety A2): initialise the own transactional id; read to the head; end for good if a higher
rank is there; write the rank; initialise the ids of all lower ranks; read to the head again; only
then act. So an orphaned attempt cannot outrank a newer one, and no two attempts act together.
"""

import contextlib
from collections.abc import Callable, Iterator

from homeport.config.config import Config
from homeport.config.errors import FencedError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.configuration import AM_SOURCE
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, Rank
from homeport.job_coordinator.model.incarnation import Incarnation, am_transactional_id


class OutrankedError(FencedError):
    """A higher rank has taken the job over: nothing of this attempt may go on (safety A2)."""

    def __init__(self, by: Rank, own: Rank) -> None:
        super().__init__(f"attempt {by} has taken over; this one is {own}")
        self.by = by


_TIMEOUT_S = 30.0


def stream_of(
    config: Config, rank: Rank, timeout_s: float = _TIMEOUT_S, *, keeps_keys: bool = False
) -> CoordinatorStreamStore:
    """Open the job's coordinator stream for writes under ``rank``; nothing is read yet.

    ``keeps_keys``: whether ``taken_keys`` has each record of a configuration key.
    """
    job = JobConfig.of(config)
    own = am_transactional_id(job.name, job.id, rank.submission, rank.application, rank.attempt)
    return CoordinatorStreamStore.of(
        config, source=AM_SOURCE, transactional_id=own, timeout_s=timeout_s, keeps_keys=keeps_keys
    )


def outrank(
    config: Config, stream: CoordinatorStream, rank: Rank, timeout_s: float = _TIMEOUT_S
) -> None:
    """Take the rank, and fence the lower ones in Kafka; errors as ``take_rank``."""

    def fence(lower: Rank) -> None:
        with stream_of(config, lower, timeout_s) as other:
            other.fence()

    take_rank(stream, rank, fence)


@contextlib.contextmanager
def outranking(
    config: Config, rank: Rank, timeout_s: float = _TIMEOUT_S
) -> Iterator[CoordinatorStreamStore]:
    """Yield the coordinator stream, read to its head; no lower rank writes it any more.

    OutrankedError: a higher rank is there: this one must end for good.
    """
    with stream_of(config, rank, timeout_s, keeps_keys=True) as stream:
        stream.fence()
        stream.bootstrap()
        outrank(config, stream, rank, timeout_s)
        yield stream


def take_rank(stream: CoordinatorStream, rank: Rank, fence: Callable[[Rank], None]) -> None:
    """Write ``rank`` as the highest into the stream; afterwards no lower one can write it.

    ``stream``: read to its head; its own transactional id is initialised. ``fence`` initialises the
    transactional id of another rank.

    OutrankedError: a higher rank is there: this attempt must end for good.
    """
    epochs = EpochManager(stream)
    lower = _lower_ranks(epochs, rank)
    epochs.write_am_epoch(AmEpoch(rank, lower))
    for other in lower:
        fence(other)
    stream.catch_up()
    _lower_ranks(epochs, rank)
    epochs.write_am_epoch(AmEpoch(rank))
    stream.catch_up()


def require_highest(stream: CoordinatorStream, rank: Rank) -> None:
    """Require that no higher rank has taken the job over; ``stream`` and errors as above."""
    _lower_ranks(EpochManager(stream), rank)


def _lower_ranks(epochs: EpochManager, rank: Rank) -> tuple[Rank, ...]:
    last = epochs.read_am_epoch()
    if last is None:
        return ()
    if last.rank.is_above(rank):
        raise OutrankedError(last.rank, rank)
    return tuple(r for r in dict.fromkeys((*last.unfenced, last.rank)) if r != rank)


def permits(stream: CoordinatorStream, unknown_ms: int) -> dict[Incarnation, int]:
    """Return {incarnation: for how many ms it can run on unseen} for each processor's last permit.

    Processors that the model does not have are among them. ``unknown_ms``: the time for permits of
    an older version, which do not record it.
    """
    records = sorted(EpochManager(stream).read_processor_epochs().items())
    return {
        Incarnation(p, r.permitted): r.goes_on_ms(unknown_ms) for p, r in records if r.permitted
    }
