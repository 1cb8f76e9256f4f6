"""InputWatch: the leader notices inputs that have more partitions than the newest version reads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError
from homeport.job_coordinator.grouper.job_model_calculator import input_streams
from homeport.job_coordinator.kafka.stream_metadata_cache import StreamMetadataCache
from homeport.job_coordinator.model.job_model import JobModel, SystemStream

_LOG = logging.getLogger(__name__)

Counts = Mapping[SystemStream, int]


class InputWatch:
    """``start`` once, ``close`` in any case.

    Args:
        config: of the leader.
        led: the newest JobModel, where this processor leads; else None.
        changed: is called when inputs have grown, once for each growth.
        counts: {stream: number of partitions now}; None: Kafka says.
    """

    def __init__(
        self,
        config: Config,
        led: Callable[[], JobModel | None],
        changed: Callable[[], object],
        counts: Callable[[], Counts] | None = None,
    ) -> None:
        self._led = led
        self._changed = changed
        cache = StreamMetadataCache(config)
        self._counts = counts or (lambda: cache.partition_counts(input_streams(config)))
        self._pause_s = keys.JOB_MONITOR_PARTITION_CHANGE_MS.read(config) / 1000
        self._reported: Counts = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="input-watch", daemon=True)

    def start(self) -> None:
        """From now on it reads the counts from Kafka, as often as the configuration says."""
        self._thread.start()

    def close(self) -> None:
        """Nothing is reported any more; a request under way ends by itself."""
        self._closed.set()

    def look(self) -> None:
        """One look; a growth is reported once, as each report puts the computation off.

        Raises:
            UnavailableError: Kafka did not answer.
        """
        model = self._led()
        if model is None:
            return
        known, now = model.partition_counts(), self._counts()
        grown = {s: count for s, count in now.items() if 0 < known.get(s, 0) < count}
        if grown and grown != self._reported:
            self._reported = grown
            names = ", ".join(f"{stream} has {count}" for stream, count in sorted(grown.items()))
            _LOG.info("inputs have got more partitions: %s", names)
            self._changed()

    def _run(self) -> None:
        while not self._closed.wait(self._pause_s):
            try:
                self.look()
            except HomeportError as error:
                _LOG.warning("the partitions of the inputs are not known now: %s", error)
