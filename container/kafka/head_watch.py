"""HeadWatch: the ends of the partitions that a standby follows, and the ids of their topics.

A thread of its own requests the ends: a broker that is away takes long to answer. It requests them
with read_uncommitted, so that a store counts as at the head only if no transaction is open
(safety K1).
"""

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence

from homeport.config.errors import HomeportError, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.client_properties import PartitionError
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import HeadPoll
from homeport.container.storage.task_store import Position
from homeport.job_coordinator.kafka.topics import TopicAdmin

_LOG = logging.getLogger(__name__)
_ANSWER_S = 10.0
_POLL, _END = "poll", "end"

HeadPolls = Mapping[Position, HeadPoll]


class HeadWatch:
    """Polls the brokers of one system; its thread ends with ``close``, or with the process.

    ``pause``: waits the seconds given, and raises to stop. ``deleted``: the message for a topic
    that does not exist any more.
    """

    def __init__(
        self,
        system: SystemConfig,
        places: Sequence[Position],
        pause: Callable[[float], None],
        clocks: Callable[[], ClockReading],
        deleted: str,
    ) -> None:
        self._places = places
        self._clocks = clocks
        self._deleted = deleted
        # The next poll follows soon; a standby must notice an outage at once.
        self._reader = LogReader(system, pause, waits_out_outages=False)
        self._topics = TopicAdmin(system, _ANSWER_S)
        self._asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[HeadPolls | HomeportError] = queue.SimpleQueue()
        self._is_asked = False
        self._is_away = False
        threading.Thread(target=self._run, name="heads", daemon=True).start()

    def ask(self) -> bool:
        """Begin a poll of the heads; return False while an earlier poll is under way."""
        if self._is_asked:
            return False
        self._is_asked = True
        self._asked.put(_POLL)
        return True

    def close(self) -> None:
        """End the polls."""
        self._asked.put(_END)

    def polled(self) -> HeadPolls:
        """Return the outcome of the last poll; nothing until it is there.

        Logs once that Kafka is away, and that it is back.

        Raises:
            PartitionError: a topic or partition does not exist any more.
        """
        try:
            answer = self._answers.get_nowait()
        except queue.Empty:
            return {}
        self._is_asked = False
        if isinstance(answer, UnavailableError):
            if not self._is_away:
                _LOG.warning("following waits for Kafka: %s", answer)
            self._is_away = True
            return {}
        if isinstance(answer, HomeportError):
            raise answer
        if answer and self._is_away:
            _LOG.info("Kafka answers again: following goes on")
            self._is_away = False
        return answer

    def _run(self) -> None:
        while self._asked.get() == _POLL:
            try:
                self._answers.put(self._poll())
            except HomeportError as error:
                self._answers.put(error)

    def _poll(self) -> HeadPolls:
        if not self._places:
            return {}
        asked = self._clocks()
        names = sorted({topic for topic, _ in self._places})
        try:
            ends = self._reader.ends(self._places)
        except PartitionError as error:
            # A broker that starts answers so too: it knows the topic, and not yet its leader.
            if self._topics.partition_counts(names).keys() == set(names):
                raise UnavailableError(str(error)) from None
            raise PartitionError(f"{error}; {self._deleted}") from None
        ids = self._topics.topic_ids(names)
        return {
            place: HeadPoll(asked, ends[place].oldest, ends[place].head, ids[place[0]])
            for place in self._places
        }
