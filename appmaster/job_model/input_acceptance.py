"""Checks at a job's start that its inputs are still the topics that it has read.

An input that was deleted and recreated has other records at the committed offsets. The start is
refused, or, with ``job.input.recreated=begin``, the job reads the new topic from
``samza.offset.default`` on. Then the order is as follows; another driver may repeat each step:

1. raise the epochs of all processors, and fence all incarnations that may still commit, so that no
   position in the old topic is written afterwards
2. read the end of the checkpoint topic: the floor
3. write the new topic's id with the floor into the coordinator stream, in one transaction, which a
   driver that was overtaken meanwhile cannot write (safety A2)
4. only then permit containers, which ignore positions of that input below the floor
"""

from homeport.appmaster.lease.fencing import fence_everybody
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.checkpoint_topic import CheckpointTopic
from homeport.job_coordinator.metadata.topics import InputTopicManager, recreated, refusal
from homeport.job_coordinator.planning.input_watch import inputs_now


class InputAcceptance:
    """The inputs of one start.

    ``stream``: read to its head. UnavailableError (from every method): Kafka did not answer.
    """

    def __init__(self, config: Config, stream: CoordinatorStream) -> None:
        self._config = config
        self._stream = stream
        self._known = InputTopicManager(stream).ids()
        self._seen = inputs_now(config).topic_ids
        self.recreated = recreated(self._known, self._seen)

    def check(self) -> list[str]:
        """Return a warning for each recreated input that the job begins again; write nothing.

        ConfigError: an input was recreated, and the job must not begin it.
        """
        is_refused = keys.JOB_INPUT_RECREATED.read(self._config) == keys.RECREATED_REFUSE
        lines = []
        for stream in self.recreated:
            if is_refused:
                raise refusal(stream, self._known[stream], self._seen[stream])
            lines.append(
                f"input {stream} was deleted and recreated (its id is {self._seen[stream]}, it was "
                f"{self._known[stream]}): it is begun where samza.offset.default says, and the "
                "state stays"
            )
        return lines

    def accept(self, submission: int) -> None:
        """Write ids of inputs and floors of recreated ones into the stream; after ``check``."""
        manager = InputTopicManager(self._stream, submission)
        floors: dict[SystemStream, int] = {}
        if self.recreated:
            fence_everybody(self._stream, self._config)
            floor = CheckpointTopic(self._config, self._stream).end()
            floors = dict.fromkeys(self.recreated, floor or 0)
        manager.write(self._seen, floors)
        self._stream.catch_up()
