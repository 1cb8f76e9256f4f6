"""Which configuration is in force: a function of the submission and of the coordinator stream.

Decides only, so that every driver and attempt of a submission decides the same. The values in the
stream override those of the deployment's file. A key that needs a new submission keeps the value
that it had at this one.

Source: COORD, "Job Coordinator".
"""

import logging
from dataclasses import dataclass

from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Liveness
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.secret_names import shown_value
from homeport.config.settings.config_diff import ConfigDiff, effective
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.settings.validation import validate
from homeport.job_coordinator.status.shape import ShownKey

log = logging.getLogger("driver")


@dataclass(frozen=True, slots=True)
class Reading:
    """The configuration to put in force, and the keys of the stream that wait, secrets masked."""

    config: Config
    pending: tuple[ShownKey, ...] = ()


def has_state(config: Config) -> bool:
    """Return whether a store of the job has a changelog. Source: Samza 1.8, "durable" stores."""
    return any(s.changelog is not None for s in StorageConfig.of(config).stores.values())


def read(submitted: Submitted, stream: Config) -> Reading:
    """Return what should be in force where the coordinator stream has ``stream``.

    ConfigError: that breaks a rule.
    """
    running, wanted = submitted.config, submitted.file.merged(stream)
    config = effective(running, wanted, has_state=has_state(running))
    left = ConfigDiff.between(config, wanted)
    takes = {
        Liveness.NEEDS_REDEPLOY: left.needs_redeploy,
        Liveness.NEVER_WITH_STATE: left.never_with_state,
    }
    pending = (
        ShownKey(name, _value(config, name), _value(wanted, name), liveness.value)
        for liveness, names in takes.items()
        for name in names
    )
    validate(config)
    return Reading(config, tuple(sorted(pending, key=lambda p: p.key)))


def _value(config: Config, name: str) -> str | None:
    key = keys.declared(name)
    found = (config.get(spelling) for spelling in (name, *(key.legacy if key else ())))
    value = next((v for v in found if v is not None), None)
    return None if value is None else shown_value(name, value)


def pending_line(key: ShownKey) -> str:
    """Return the line of the log about a key that keeps its value for now."""
    stays, wanted = _shown(key.in_force), _shown(key.wanted)
    stream = f"although the coordinator stream says {wanted}"
    return f"{key.key} stays {stays}, {stream}: {key.takes}"


def _shown(value: str | None) -> str:
    return "unset" if value is None else repr(value)


class LiveConfiguration:
    """Reads the stream's configuration, and remembers what of it is pending or refused."""

    def __init__(self, submitted: Submitted) -> None:
        self._submitted = submitted
        self._refused: Config | None = None
        self.pending: tuple[ShownKey, ...] = ()
        self.fault: str | None = None

    def wanted(self, stream: Config) -> Config | None:
        """Return what should be in force; None: it breaks a rule, see ``fault``.

        New pending keys and a new fault are logged.
        """
        try:
            reading = read(self._submitted, stream)
        except ConfigError as error:
            self.refused(stream, error)
            return None
        for pending in reading.pending:
            if pending not in self.pending:
                log.warning("%s", pending_line(pending))
        self.pending = reading.pending
        if stream == self._refused:
            return None
        self.fault = self._refused = None
        return reading.config

    def refused(self, stream: Config, error: HomeportError) -> None:
        """Note that ``stream`` gives no JobModel; it is not tried again until it changes."""
        if str(error) != self.fault:
            log.error("the configuration in force stays: %s", error)
        self._refused, self.fault = stream, str(error)
