"""What has become of a job's inputs since its JobModel was made: the partition-count monitor.

``InputWatch`` decides only; ``inputs_now`` asks Kafka.

Source: Samza 1.8, StreamPartitionCountMonitor.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.grouper.job_model_calculator import input_streams
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.state_reset import OPTION
from homeport.job_coordinator.model.job_model import JobModel, SystemStream


@dataclass(frozen=True, slots=True)
class InputsSeen:
    """Shapes: ``counts`` {stream: partitions}, ``topic_ids`` {stream: Kafka's id of its topic}.

    A stream that does not exist is in neither.
    """

    counts: Mapping[SystemStream, int]
    topic_ids: Mapping[SystemStream, str]


def inputs_now(config: Config) -> InputsSeen:
    """Return the inputs as they are now; UnavailableError where Kafka did not answer in time."""
    counts: dict[SystemStream, int] = {}
    topic_ids: dict[SystemStream, str] = {}
    systems: dict[str, list[str]] = {}
    for stream in input_streams(config):
        systems.setdefault(stream.system, []).append(stream.stream)
    for system, names in systems.items():
        admin = TopicAdmin(SystemConfig.of(config, system))
        found = admin.partition_counts(names)
        counts |= {SystemStream(system, name): count for name, count in found.items()}
        ids = admin.topic_ids(sorted(found))
        topic_ids |= {SystemStream(system, name): topic_id for name, topic_id in ids.items()}
    return InputsSeen(counts, topic_ids)


class InputWatch:
    """Compares what is seen with what the JobModel knows, and with what was seen at first."""

    def __init__(self, topic_ids: Mapping[SystemStream, str] | None = None) -> None:
        self.topic_ids = dict(topic_ids or {})

    def fault(self, model: JobModel, seen: InputsSeen) -> str | None:
        """Return why the job cannot go on with its inputs, in one line; None where it can.

        A topic keeps its partitions for ever, and its records their offsets: one that has fewer, is
        gone or was recreated is not the one whose offsets the job has committed.
        """
        for stream, known in sorted(model.partition_counts().items()):
            count = seen.counts.get(stream, 0)
            if not count:
                return f"input stream {stream} does not exist any more; {_REMEDY}"
            if count < known:
                return (
                    f"input stream {stream} has {count} partitions and had {known}: it was "
                    f"recreated; {_REMEDY}"
                )
            first = self.topic_ids.setdefault(stream, seen.topic_ids[stream])
            if first != seen.topic_ids[stream]:
                return f"input stream {stream} was deleted and recreated; {_REMEDY}"
        return None

    @staticmethod
    def grown(
        model: JobModel, counts: Mapping[SystemStream, int], streams: Iterable[SystemStream]
    ) -> str | None:
        """Return which ``streams`` have more partitions than the model knows; None: none has."""
        known = model.partition_counts()
        said = [
            f"input stream {stream} has grown from {known[stream]} to {counts[stream]} partitions"
            for stream in sorted(streams)
            if stream in known and counts.get(stream, 0) > known[stream]
        ]
        return ", ".join(said) or None


_REMEDY = (
    "what the job has committed, offsets and state, does not belong to it; give the job another "
    f"job.id, submit it with {OPTION}, or with {keys.JOB_INPUT_RECREATED.name}="
    f"{keys.RECREATED_BEGIN} to keep the state and begin the new topic"
)
