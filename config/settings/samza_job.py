"""What becomes of a Samza job's configuration here, key by key.

PURE. Each key is taken as it is, taken with a change, without effect, refused, or the job's own:
one of these, the worst. A configuration whose keys are good each by itself can still break a rule
between keys: then the key that ``run-job`` would name is refused. The last findings are about keys
that are not set, and what Samza would do by their defaults.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key
from homeport.config.declarations.samza_keys import SamzaKey
from homeport.config.declarations.standalone_keys import YARN
from homeport.config.declarations.unknown_keys import meant_key, require_known
from homeport.config.errors import ConfigError
from homeport.config.java_names import is_user_class
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.standalone_section import check_mixed_roles, require_coordinator
from homeport.config.settings.used_systems import used_systems
from homeport.config.settings.validation import validate


class Verdict(StrEnum):
    """What becomes of a key."""

    TAKEN = "taken"
    CHANGED = "changed"
    NO_EFFECT = "no effect"
    REFUSED = "refused"
    OWN = "the job's own"


@dataclass(frozen=True, slots=True)
class Finding:
    """One key, or with a rule between keys the one that the rule names.

    ``about``: what is different, or why it is refused and what to do; "" where it is taken.
    """

    key: Annotated[str, Meta(description="of the Samza job's configuration")]
    verdict: Annotated[Verdict, Meta(description="what becomes of it")]
    about: Annotated[str, Meta(description="more of that; may be empty")] = ""


_CODE: Final = frozenset({keys.TASK_CLASS.name, "app.class"})
_STANDS_IN: Final = "the_job:Task"
"""In the place of a Java class, so that the rules of the other keys can be checked."""
_PYTHON: Final = (
    "its class is Java; write the task in Python, and name it as module:Name in task.class"
)
_APP_NAME: Final = "app.name"
_STARTPOINTS: Final = SamzaKey("job.startpoint.enabled", "")
_DEFAULTS: Final[Mapping[tuple[Key | SamzaKey, ...], str]] = {
    (_STARTPOINTS,): (
        "without it Samza begins at the startpoints in the job's coordinator stream; here they are "
        "not read, and run-job names them"
    ),
    (keys.TASK_CALLBACK_TIMEOUT_MS,): (
        "without it a call of the job's code ends its container after 10 minutes; Samza waits for "
        "ever: -1 does"
    ),
    (keys.TASK_EXACTLY_ONCE,): (
        "without it outputs are part of one transaction with state and input position; Samza sends "
        "them at least once: false does"
    ),
    (keys.SYSTEM_LOST_INPUT, keys.STREAM_LOST_INPUT): (
        "without it a container fails where Kafka has deleted records that it has not read; Samza "
        "goes on at samza.offset.default"
    ),
}
"""{keys, of which any may be set: what the default of the first does here, and in Samza}."""


def findings_of(config: Config) -> tuple[Finding, ...]:
    """Return one finding for each key, in the order of ``config``, then those of unset keys."""
    found = {name: _of_key(config, name) for name in config}
    kept = _rest(config, [f.key for f in found.values() if f.verdict is Verdict.REFUSED])
    ignored = dict(_ignored(kept))
    found |= {key: Finding(key, Verdict.NO_EFFECT, about) for key, about in ignored.items()}
    found |= {finding.key: finding for finding in _between(kept)}
    unset = [
        Finding(either[0].name, Verdict.CHANGED, about)
        for either, about in _DEFAULTS.items()
        if not any(key.matches(name) for key in either for name in config)
    ]
    return (*found.values(), *unset)


def _rest(config: Config, refused: Collection[str]) -> Config:
    """Return what is not ``refused``, with what lets the rules of the others be checked."""
    values = {
        name: value
        for name in config
        if name not in refused and (value := config.get_str(name)) is not None
    }
    default = keys.JOB_DEFAULT_SYSTEM.read(config) or ""
    brokers = config.get_str(_brokers(default), _STANDS_IN)
    for name in refused:
        parts = keys.SYSTEM_FACTORY.parts_of(name)
        if parts is not None:  # no Kafka has its streams: no other rule of Kafka's matters
            values[_brokers(*parts)] = brokers
    if _APP_NAME in refused:
        values[keys.JOB_NAME.name] = config[_APP_NAME]
    return Config(values | {keys.TASK_CLASS.name: _task_class(config)})


def _brokers(system: str) -> str:
    return keys.SYSTEM_CONSUMER.named(system, "bootstrap.servers")


def _task_class(config: Config) -> str:
    value = config.get_str(keys.TASK_CLASS.name)
    return value if value and is_user_class(value) else _STANDS_IN


def _of_key(config: Config, name: str) -> Finding:
    if name in _CODE and not is_user_class(config.get_str(name, "")):
        return Finding(name, Verdict.CHANGED, _PYTHON)
    key, samza_key = meant_key(name)
    try:
        if samza_key is not None:
            return _of_samza(name, samza_key.objection(config, name))
        if key is None:
            require_known(Config({name: config[name]}))
            return Finding(name, Verdict.OWN, "only the job's own code reads it")
        key.check(config, name)
    except ConfigError as error:
        return Finding(name, Verdict.REFUSED, f"{error.rule}; {error.remedy}")
    return _of_ours(config, key, name)


def _of_ours(config: Config, key: Key, name: str) -> Finding:
    if name not in key.legacy:
        return Finding(name, Verdict.TAKEN)
    if config.get_str(key.name) is not None:
        return Finding(name, Verdict.NO_EFFECT, f"{key.name}, its present name, is set too")
    return Finding(name, Verdict.CHANGED, f"it is read; its present name is {key.name}")


def _of_samza(name: str, objection: str | None) -> Finding:
    if objection is None:
        return Finding(name, Verdict.TAKEN)
    return Finding(name, Verdict.NO_EFFECT, objection.partition("has no effect here: ")[2])


def _between(config: Config) -> Iterator[Finding]:
    checks: tuple[Callable[[Config], object], ...] = (
        lambda c: require_coordinator(c, YARN),
        check_mixed_roles,
        validate,
    )
    for check in checks:
        try:
            check(config)
        except ConfigError as error:
            yield Finding(error.key, Verdict.REFUSED, f"{error.rule}; {error.remedy}")


def _ignored(config: Config) -> Iterator[tuple[str, str]]:
    try:
        for system in used_systems(config):
            yield from SystemConfig.of(config, system).ignored.items()
    except ConfigError:
        return  # the rule is among the findings
