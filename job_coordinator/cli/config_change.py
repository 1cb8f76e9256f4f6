"""One change of a job's configuration: whether it may be written, and what it will mean.

Everything that can be checked is checked before anything is written: a value that a reader could
not use would stop the job's next start, or be ignored by the one that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.unknown_keys import warnings_about
from homeport.config.errors import ConfigError
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.validation import validate

_IDENTITY = {
    key.name: why
    for why, group in {
        "it says which job this is and where its coordinator stream is": (
            keys.JOB_NAME,
            keys.JOB_ID,
            keys.JOB_COORDINATOR_SYSTEM,
        ),
        "the AM writes it": (keys.YARN_AM_TRACKING_URL, keys.YARN_AM_CERTIFICATE),
    }.items()
    for key in group
}
_SHAPES_MODEL = (keys.JOB_CONTAINER_COUNT.name, keys.TASK_NAME_GROUPER_FACTORY.name)


@dataclass(frozen=True)
class ConfigChange:
    """A key and what becomes of it; ``value`` None: it is deleted."""

    key: str
    value: str | None
    before: Config
    after: Config

    @property
    def diff(self) -> ConfigDiff:
        """What is different then."""
        return ConfigDiff.between(self.before, self.after)

    def meaning(self, *, is_running: bool) -> str:
        """What happens next, in one line, for the operator."""
        diff = self.diff
        if diff.is_empty:
            return "it means what was in force before: nothing changes"
        if not is_running:
            return "used from the job's next start"
        within = f"within {2 * _catch_up_ms(self.before)} ms"
        if diff.needs_redeploy or diff.never_with_state:
            return "used from the next deployment; the running job goes on as it is"
        if diff.restarts_containers:
            return f"the running job takes it {within}: its containers restart"
        if diff.retunes_containers:
            return f"the running job and its containers take it {within}: nothing restarts"
        return f"the running job takes it {within}"


def _catch_up_ms(config: Config) -> int:
    """How often the running job looks; a value beyond the key's range is not in force."""
    key = keys.JOB_COORDINATOR_CATCH_UP_INTERVAL_MS
    try:
        return key.read(config)
    except ConfigError:
        return key.read(Config())


def check_key(key: str, value: str | None) -> tuple[str, ...]:
    """The key may be changed by hand, and the value, if it is a known key's, is of its type.

    Returns:
        Warnings, one line each, about a key that will have no effect.

    Raises:
        ConfigError: it may not, or is not.
    """
    if key in _IDENTITY:
        raise ConfigError("--key", key, _IDENTITY[key], "change it in the properties file")
    if value is None:
        return ()
    given = Config({key: value})
    known = keys.declared(key)
    if known is not None:
        known.check(given, key)
    return warnings_about(given)


def checked_change(
    key: str,
    value: str | None,
    before: Config,
    file: Config,
    *,
    has_state: bool,
    check_model: Callable[[Config], None],
) -> ConfigChange:
    """The change, which breaks no rule.

    Args:
        key: configuration key.
        value: its new value; None deletes it, so that the deployment's stands again.
        before: what the coordinator stream says; empty before the job's first deployment.
        file: the job's properties file, which says what a deletion brings back.
        has_state: whether the job may have left state in changelogs.
        check_model: raises ConfigError where no JobModel can be made of a configuration.

    Raises:
        ConfigError: the configuration as a whole would break a rule that it does not break now, or
            the key is settled once a job has state.
        UnavailableError: ``check_model`` could not ask.
    """
    present = before or file
    values = {name: text for name, text in present.items() if name != key}
    if value is not None:
        values[key] = value
    elif key in file:
        values[key] = file[key]
    after = Config(values)
    change = ConfigChange(key, value, present, after)
    if has_state and change.diff.never_with_state:
        raise ConfigError(
            key,
            after.get(key, "its default"),
            f"it is {present.get(key, 'its default')!r}, and settled once a job has state, which a "
            "change would mix up",
            "begin from nothing with the new value in the file: run-job --reset-state",
        )
    for check in (validate, *((check_model,) if key in _SHAPES_MODEL else ())):
        fault = _fault(check, after)
        if fault is not None and str(fault) != str(_fault(check, present)):
            raise fault
    return change


def _fault(check: Callable[[Config], object], config: Config) -> ConfigError | None:
    try:
        check(config)
    except ConfigError as error:
        return error
    return None
