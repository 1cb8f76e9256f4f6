"""LiveTuning: a running container takes over the tuning keys of a newer configuration.

The AM's answers to check-ins name the version of the JobModel in force, and the launcher writes it
into the memory that it shares with the container. At a new version, a thread of the container
fetches the configuration from the AM, so that the loop never waits for it. All other keys stay as
the container's own JobModel has them.
"""

import logging
import threading
from dataclasses import asdict, dataclass

from homeport.config.config import Config
from homeport.config.errors import HomeportError, UnavailableError
from homeport.config.settings.tuning import Tuning
from homeport.container.incarnation.context import IncarnationContext
from homeport.job_coordinator import logs

_LOG = logging.getLogger(__name__)

_PAUSE_S = 1.0
"""Between two attempts to fetch the configuration from an AM that does not answer."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    version: int
    tuning: Tuning


class LiveTuning:
    """Has the tuning in force for one thread, which calls ``latest`` once per turn of its loop.

    The container's memory names the version in force; its coordinator has the configuration.
    """

    def __init__(self, context: IncarnationContext) -> None:
        self._context = context
        version = context.permit.model_version
        self._now = _Fetched(version, Tuning.of(context.job.config))
        self._asked_version = version
        self._fetched = self._now
        logs.set_level(self._now.tuning.log_level)

    def latest(self) -> Tuning:
        """Return the newest tuning that was fetched; begin to fetch a newer one."""
        fetched = self._fetched
        if fetched is not self._now:
            self._take(fetched)
        version = self._context.launcher.model_version
        is_fetching = self._fetched.version < self._asked_version
        if version > self._asked_version and not is_fetching:
            self._asked_version = version
            threading.Thread(target=self._run, args=(version,), name="tuning", daemon=True).start()
        return self._now.tuning

    def _take(self, fetched: _Fetched) -> None:
        before, self._now = self._now.tuning, fetched
        if fetched.tuning != before:
            logs.set_level(fetched.tuning.log_level)
            values = asdict(fetched.tuning)
            self._context.history("retuned", model_version=fetched.version, **values)
            shown = ", ".join(f"{name} {value}" for name, value in values.items())
            _LOG.info("JobModel %d is in force: %s", fetched.version, shown)

    def _run(self, version: int) -> None:
        tuning, stop = self._now.tuning, self._context.stop
        while not stop.is_set():
            try:
                tuning = Tuning.of(Config(self._context.coordinator.config()))
            except UnavailableError as error:
                _LOG.warning("%s: the tuning stays for now", error)
                stop.wait(_PAUSE_S)
                continue
            except HomeportError as error:
                _LOG.error("the tuning stays: %s", error)
            break
        self._fetched = _Fetched(version, tuning)
