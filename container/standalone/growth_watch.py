"""GrowthWatch: a leader notices inputs with more partitions than the newest version reads."""

import logging
import threading
from collections.abc import Callable, Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError
from homeport.config.settings.sections import TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka.topics import StreamMetadataCache
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.planning.input_watch import InputWatch

_LOG = logging.getLogger(__name__)


class GrowthWatch:
    """Notices that inputs have grown; ``start`` once, ``close`` in any case.

    ``led``: returns the newest JobModel if this processor leads; else None. ``changed``: called
    once for each growth. ``counts``: returns {input: number of partitions}; None: from Kafka.
    """

    def __init__(
        self,
        config: Config,
        led: Callable[[], JobModel | None],
        changed: Callable[[], object],
        counts: Callable[[], Mapping[SystemStream, int]] | None = None,
    ) -> None:
        self._led, self._changed = led, changed
        self._inputs = TaskConfig.of(config).inputs
        cache = StreamMetadataCache(config)
        self._counts = counts or (lambda: cache.partition_counts(self._inputs))
        self._pause_s = keys.JOB_MONITOR_PARTITION_CHANGE_MS.read(config) / 1000
        self._reported: str | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="growth-watch", daemon=True)

    def start(self) -> None:
        """Read the counts from Kafka from now on, at the rate of the configuration."""
        self._thread.start()

    def close(self) -> None:
        """Report nothing any more; a request under way ends by itself."""
        self._closed.set()

    def check(self) -> None:
        """Look once; report each growth once, since each report delays the computation.

        UnavailableError: Kafka did not answer.
        """
        model = self._led()
        grown = None if model is None else InputWatch.grown(model, self._counts(), self._inputs)
        if grown is not None and grown != self._reported:
            self._reported = grown
            _LOG.info("%s", grown)
            self._changed()

    def _run(self) -> None:
        while not self._closed.wait(self._pause_s):
            try:
                self.check()
            except HomeportError as error:
                _LOG.warning("the partitions of the inputs are not known now: %s", error)
