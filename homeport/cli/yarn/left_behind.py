"""What a Samza job leaves behind that nothing here reads, in words for the take-over."""

from collections.abc import Iterator

from homeport.config.config import Config
from homeport.config.settings.stores_section import StorageConfig
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import MessageType, Namespace
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.task_assignment import LocalityManager, TaskAssignmentManager
from homeport.job_coordinator.ui.first_screen import listed

_UNREAD = (
    Namespace.DRAIN,
    MessageType.SET_EXECUTION_ENV_CONTAINER_ID,
    MessageType.SET_JOB_COORDINATOR_METADATA,
    MessageType.SET_MIGRATION_INFO,
)


def left_behind(config: Config, stream: CoordinatorStream) -> Iterator[str]:
    """Yield a line for each kind of thing; none once an AM of Homeport has run the job.

    ``stream``: read to its head.
    """
    if EpochManager(stream).read_am_epoch() is not None:
        return
    # Samza puts those of a partition in the place of each of its tasks when the job starts.
    startpoints = (Namespace.STARTPOINT, Namespace.STARTPOINT_FAN_OUT)
    names = [name for kind in startpoints for name in stream.latest(kind)]
    if names:
        yield (
            f"startpoints of Samza are not read: {listed(names)}; start.time of a stream counts "
            "where a task has no checkpoint, and homeport checkpoint set moves the checkpoints of "
            "a job without state"
        )
    counts = {kind: len(stream.latest(kind)) for kind in _UNREAD}
    unread = [f"{count} {kind}" for kind, count in counts.items() if count]
    if unread:
        yield f"records that nothing here reads stay in the coordinator stream: {listed(unread)}"
    has_state = any(s.changelog is not None for s in StorageConfig.of(config).stores.values())
    hosts = sorted({*LocalityManager(stream).read_processors().values()})
    if has_state and hosts and TaskAssignmentManager(stream).read():
        yield (
            f"directories of the Samza job's stores on {listed(hosts)} are not used, as each store "
            "is read from its changelog; homeport clean, on each host, removes what stays"
        )
