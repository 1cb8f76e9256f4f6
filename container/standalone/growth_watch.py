"""GrowthWatch: a leader notices inputs with more partitions, and topics that become inputs."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError
from homeport.config.loading.regex_topics import TopicsOf, new_inputs, with_matching
from homeport.config.settings.sections import TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka.topics import StreamMetadataCache, topics_of
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.planning.input_watch import InputWatch

_LOG = logging.getLogger(__name__)
_Counts = Callable[[Collection[SystemStream]], Mapping[SystemStream, int]]


class GrowthWatch:
    """Notices that inputs of the newest version have grown, or that a new topic matches.

    ``start`` once, ``close`` in any case. ``led``: returns the newest JobModel if this processor
    leads; else None. ``changed``: called once for each such change. ``counts``: returns {input:
    number of partitions}, ``topics`` those of a system; both ask Kafka. ``new``: the topics that
    matched, and were no input, at the last look.
    """

    def __init__(
        self,
        config: Config,
        led: Callable[[], JobModel | None],
        changed: Callable[[], object],
        counts: _Counts | None = None,
        topics: TopicsOf = topics_of,
    ) -> None:
        self._config, self._led, self._changed = config, led, changed
        self._counts = counts or StreamMetadataCache(config).partition_counts
        self._topics = topics
        growth, regex = keys.JOB_MONITOR_PARTITION_CHANGE_MS, keys.JOB_MONITOR_INPUT_REGEX_MS
        self._pauses_s = {self.check: growth.read(config) / 1000}
        self._pauses_s[self.check_topics] = regex.read(config) / 1000
        self._reported: set[str] = set()
        self.new: Collection[SystemStream] = ()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="growth-watch", daemon=True)

    def start(self) -> None:
        """Read counts and topics from Kafka from now on, at the rates of the configuration."""
        self._thread.start()

    def close(self) -> None:
        """Report nothing any more; a request under way ends by itself."""
        self._closed.set()

    def check(self) -> None:
        """Look once for growth; report each once, since each report delays the computation.

        UnavailableError: Kafka did not answer.
        """
        model = self._led()
        if model is not None:
            inputs = TaskConfig.of(self._config_of(model)).inputs
            self._report(InputWatch.grown(model, self._counts(inputs), inputs))

    def check_topics(self) -> None:
        """Look once for topics that match and that the newest version lacks; errors as above."""
        model = self._led()
        if model is not None:
            self.new = found = new_inputs(self._config_of(model), self._topics)
            self._report(f"new topics match: {', '.join(map(str, found))}" if found else None)

    def _config_of(self, model: JobModel) -> Config:
        return with_matching(self._config, model.partition_counts())

    def _report(self, line: str | None) -> None:
        if line is not None and line not in self._reported:
            self._reported.add(line)
            _LOG.info("%s", line)
            self._changed()

    def _run(self) -> None:
        due_s = {check: time.monotonic() + pause_s for check, pause_s in self._pauses_s.items()}
        while not self._closed.wait(max(0.0, min(due_s.values()) - time.monotonic())):
            check = min(due_s, key=lambda each: due_s[each])
            try:
                check()
            except HomeportError as error:
                _LOG.warning("what has become of the inputs is not known now: %s", error)
            due_s[check] = time.monotonic() + self._pauses_s[check]
