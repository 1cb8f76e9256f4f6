"""One change of a job's configuration: whether it may be written, and what it will mean.

Everything that can be checked is checked before anything is written: a value that a reader could
not use would stop the job's next start, or be ignored by the one that runs.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import IntKey, Key, Liveness
from homeport.config.declarations.operators_file import (
    reaches_out,
    require_of_file,
    require_own_code,
    taking_back,
    with_own_places,
)
from homeport.config.declarations.unknown_keys import (
    UNREAD,
    correction,
    is_unread,
    meant_by,
    meant_key,
    warnings_about,
)
from homeport.config.errors import ConfigError
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.validation import validate
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model, input_streams
from homeport.job_coordinator.grouper.one_time_configuration import changed_use, require_same_tasks
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.metadata.configuration import AM_KEYS
from homeport.job_coordinator.metadata.topics import recreated, refusal
from homeport.job_coordinator.model.job_model import SystemStream
from homeport.job_coordinator.planning.input_watch import inputs_now
from homeport.job_coordinator.planning.next_model import counts_now
from homeport.job_coordinator.ui.first_screen import listed

_OF_THE_JOB = (keys.JOB_NAME.name, keys.JOB_ID.name, keys.JOB_COORDINATOR_SYSTEM.name)
_IDENTITY = {
    **dict.fromkeys(_OF_THE_JOB, "it says which job this is and where its coordinator stream is"),
    **dict.fromkeys(sorted(AM_KEYS), "the AM writes it"),
}
"""{key: why it cannot be set by hand}."""
NO_KEYS: Mapping[str, str | None] = MappingProxyType({})
FORCE = "--force"
AT_ONCE = "--at-once"
_PART = re.compile(r"<(\w+)>")
_FOUNDS: Mapping[str, Key] = {"store": keys.STORE_FACTORY, "system": keys.SYSTEM_CONSUMER}
"""{kind of thing: the key that gives the job one}."""
_IN_THE_FILE = "change it in the properties file"
_CATCH_UP = keys.JOB_COORDINATOR_CATCH_UP_INTERVAL_MS
INPUTS = (keys.TASK_INPUTS.name, keys.TASK_BROADCAST_INPUTS.name)
_SHAPES_MODEL = (keys.JOB_CONTAINER_COUNT.name, keys.TASK_NAME_GROUPER_FACTORY.name, *INPUTS)


@dataclass(frozen=True)
class ConfigChange:
    """The job's configuration before one of its keys changes, and after."""

    before: Config
    after: Config

    @property
    def diff(self) -> ConfigDiff:
        """What the change makes different."""
        return ConfigDiff.between(self.before, self.after)

    def meaning(
        self, *, is_running: bool, restarting: Collection[str] = (), is_at_once: bool = False
    ) -> str:
        """Return what happens next, in one line, for the operator.

        ``restarting``: the containers that process input now. ``is_at_once``: whether they restart
        together.
        """
        diff = self.diff
        if diff.is_empty:
            return "it means what was in force before: nothing changes"
        if diff == ConfigDiff(unread=diff.unread):
            return "no program reads it: nothing changes"
        if not is_running:
            return "used from the job's next start"
        if diff.needs_redeploy or diff.never_with_state:
            return "used from the next deployment; the running job goes on as it is"
        within = f"within {2 * _in_force(_CATCH_UP, self.before)} ms"
        if diff.retunes_containers:
            return f"the running job and its containers take it {within}: nothing restarts"
        which = f": {listed(sorted(restarting))}" if restarting else ""
        what = ""
        if diff.restarts_containers:
            what = f": its containers restart{self._how(is_at_once=is_at_once)}{which}"
        elif any(name in INPUTS for name in diff.live):
            what = ": containers whose tasks get or lose an input restart"
        return f"the running job takes it {within}{what}"

    def missing(self, key: str) -> Iterator[str]:
        """Yield a line where ``key`` is of a store, or a system, that the job does not have."""
        owners = _owners(key)
        for kind, name in owners.items():
            others = (_owners(other).get(kind) for other in self.after if other != key)
            known = sorted({other for other in others if other is not None})
            if name not in known and _FOUNDS[kind].parts_of(key) is None:
                there_are = f", but {listed(known)}" if known else ""
                rule = f"the job has no {kind} {name!r}{there_are}"
                yield f"--key = {key!r}: {rule}: the value counts once there is one"

    def _how(self, *, is_at_once: bool) -> str:
        """Return the order of the restarts; the JobModel that may move tasks is not at hand."""
        changed = (*self.diff.restarts_containers, *self.diff.live)
        moves_tasks = any(name in _SHAPES_MODEL for name in changed)
        forgives = _in_force(keys.CONTAINER_RETRY_COUNT, self.before) != 0
        if is_at_once or moves_tasks or not forgives:
            return ", all at once"
        seconds = _in_force(keys.ROLLING_RESTART_WATCH_MS, self.before) / 1000
        return (
            f", one after the other, standbys first, each watched for {seconds:g} s; where one "
            f"fails, the former value comes back ({AT_ONCE}: all actives together, unwatched)"
        )


def _owners(key: str) -> dict[str, str]:
    known, _ = meant_key(key)
    names = None if known is None else known.parts_of(key)
    if known is None or names is None:
        return {}
    kinds = _PART.findall(known.name)
    return {kind: name for kind, name in zip(kinds, names, strict=True) if kind in _FOUNDS}


def _in_force(key: IntKey, config: Config) -> int:
    """Return the value in force: the default where the given one is beyond the key's range."""
    try:
        return key.read(config)
    except ConfigError:
        return key.read(Config())


def refuse_written(written: Config, file: Config) -> None:
    """Require that no tool has written a key that names the job, or reaches out from this machine.

    ConfigError: one has written such a key, as Samza's tool can, which checks nothing.
    """
    for key, why in _IDENTITY.items():
        if key in written and written[key] != file.get(key):
            rule = f"{why}, and a tool has written it"
            raise ConfigError(key, written[key], rule, taking_back(key))
    require_of_file(written, file)


def check_key(
    key: str, value: str | None, job: Config | None = None, *, is_forced: bool = False
) -> tuple[str, ...]:
    """Require that the key may be changed by hand, and that a known key's value has its type.

    ``value``: None: what was set by hand is deleted. ``job``: the keys beside which the key is
    judged, as far as they are at hand. ``is_forced``: allow a key that no program reads. Returns
    warnings, one line each, about a key that will have no effect.

    ConfigError: it may not, the value has another type, or no program reads the key.
    """
    if value is None:
        return ()
    if key in _IDENTITY:
        raise ConfigError("--key", key, _IDENTITY[key], _IN_THE_FILE)
    after = (job or Config()).merged({key: value})
    known, _ = meant_key(key)
    if known is not None:
        known.check(after, key)
    warnings = _warnings(key, after, is_forced=is_forced)
    if is_unread(key) and not is_forced:
        raise _unread(key, after)
    if known is None or not reaches_out(known, value):
        return warnings
    rule = f"run-job takes {known.reach.value} from the properties file alone"
    if known.liveness is not Liveness.RESTARTS_CONTAINERS:
        raise ConfigError(key, value, rule, _IN_THE_FILE)
    return (*warnings, f"{key}: {rule}, and refuses another value: {_IN_THE_FILE} too")


def _warnings(key: str, after: Config, *, is_forced: bool) -> tuple[str, ...]:
    try:
        return warnings_about(after, key)
    except ConfigError as error:
        if not is_forced:
            raise
        return (f"{error}; run-job refuses it while it stands",)


def _unread(key: str, after: Config) -> ConfigError:
    _, samza_key = meant_key(key)
    rule = UNREAD
    if samza_key is not None and samza_key.objection(after, key) is None:
        rule += ", which is Samza's, and the value asks for what happens here anyway"
    elif samza_key is not None:
        rule += f", which is Samza's and has no effect here: {samza_key.reason}"
    remedy = f"{correction(key)}; {FORCE} writes this one, and nothing restarts"
    return ConfigError("--key", key, rule, remedy)


def check_operators_key(key: str) -> None:
    """Require that an operator may set the key, or take it back, by HTTP.

    ConfigError: the key may name what a process runs, reads or connects to, or it takes no effect
    live.
    """
    known, near = keys.declared(key), meant_by(key)
    if known is not None and known.is_operators:
        return
    remedy = f"homeport config set {key}, by a user with rights on the coordinator stream"
    if known is None and near is not None:
        remedy = f"write {near}, if that is meant"
    rule = "by HTTP a number, a switch or a choice that the running job takes live can be set"
    raise ConfigError("key", key, f"{rule}, and this is none of them", remedy)


def check_deletion(key: str, *, is_set_by_hand: bool) -> None:
    """Refuse, with a ConfigError, to delete a deployment's key that names the job itself."""
    if key in _IDENTITY and not is_set_by_hand:
        raise ConfigError("--key", key, _IDENTITY[key], _IN_THE_FILE)


def checked_change(
    key: str,
    value: str | None,
    before: Config,
    file: Config,
    *,
    has_state: bool,
    check_model: Callable[[Config], None],
    also: Mapping[str, str | None] = NO_KEYS,
) -> ConfigChange:
    """Return the change, which breaks no rule.

    ``value``: None deletes the key, so that the deployment's stands again. ``also``: further keys
    of the same change. ``before``: that of the coordinator stream, empty before the first
    deployment. ``file``: the values that a deletion brings back. ``has_state``: whether the job may
    have left state in changelogs. ``check_model`` raises ConfigError where no JobModel can be made
    of a configuration.

    ConfigError: the configuration as a whole would break a rule that it does not break now, or the
    key is settled once a job has state.
    UnavailableError: ``check_model`` could not ask.
    """
    present = file.merged(before)  # as the AM has it: a key that was deleted is the deployment's
    changes = {**also, key: value}
    values: dict[str, str | None] = {**present, **{k: file.get(k) for k in changes}}
    values |= {name: text for name, text in changes.items() if text is not None}
    after = Config({name: text for name, text in values.items() if text is not None})
    change = ConfigChange(present, after)
    if all(map(is_unread, changes)):  # by force: the running job leaves them out
        return change
    if has_state and change.diff.never_with_state:
        raise ConfigError(
            key,
            after.get(key, "its default"),
            f"it is {present.get(key, 'its default')!r}, and settled once a job has state, which a "
            "change would mix up",
            "begin from nothing with the new value in the file: run-job --reset-state",
        )

    def check_use(config: Config) -> None:
        is_at_stake = has_state and any(keys.STORE_CHANGELOG.matches(name) for name in present)
        fault = changed_use(present, config) if is_at_stake else None
        if fault is not None:
            raise fault

    known = map(keys.declared, changes)
    shapes_model = any(each is not None and each.name in _SHAPES_MODEL for each in known)
    for check in (validate, check_use, *((check_model,) if shapes_model else ())):
        fault = _fault(check, after)
        if fault is not None and str(fault) != str(_fault(check, present)):
            raise fault
    return change


def keys_with_inputs(
    before: Config, after: Config, file: Config, by_hand: Collection[str]
) -> dict[str, str | None]:
    """Return the keys that come and go with inputs: {key: the value of ``file``; None: it goes}.

    They are those of a new input's stream and of the store that it fills, with the serdes that they
    name, and what was set by hand of the stream of an input that goes.

    ``before``: that of the coordinator stream; ``after``: with the inputs of the change.
    """
    had, has = set(_inputs(before)), set(_inputs(after))
    new, gone = _owners_of(has - had, file), _owners_of(had - has, Config())
    found = {k: file[k] for k in file if k.startswith(new)}
    serdes = tuple(f"serializers.registry.{v}." for k, v in found.items() if k.endswith(".serde"))
    found |= {k: file[k] for k in file if k.startswith(serdes)}
    comes = {k: v for k, v in found.items() if k not in before}
    return {**comes, **{k: None for k in by_hand if k.startswith(gone)}}


def _inputs(config: Config) -> Collection[SystemStream]:
    try:
        return input_streams(config)
    except ConfigError:  # the check of the change has the line
        return ()


def _owners_of(streams: Collection[SystemStream], file: Config) -> tuple[str, ...]:
    """Return how the keys begin that are of these streams, and of the stores that they fill."""
    stores = (
        f"stores.{name}."
        for key in file
        for (name,) in [keys.STORE_ADSTORE_INPUT.parts_of(key) or ("",)]
        if name and SystemStream.parse(file[key]) in streams
    )
    return (*(f"systems.{s.system}.streams.{s.stream}." for s in streams), *stores)


def _fault(check: Callable[[Config], object], config: Config) -> ConfigError | None:
    try:
        check(config)
    except ConfigError as error:
        return error
    return None


def require_model_here(
    file: Config,
    key: str,
    value: str | None,
    warn: Callable[[str], object],
    before: PreviousAssignment = NOTHING,
    topics: Mapping[SystemStream, str] = MappingProxyType({}),
) -> Callable[[Config], None]:
    """Return a ``check_model`` of a tool, whose operator sets the key.

    Kafka is where ``file`` says; a grouper of the job's own is one that the operator names. With
    another one ``warn`` gets a line, and no model is made. ``before``, ``topics``: what the job had
    last.
    """
    own = file if value is None else file.merged({key: value})

    def check(config: Config) -> None:
        groupers = keys.JOB_SSP_GROUPER_FACTORY, keys.TASK_NAME_GROUPER_FACTORY
        fault = _fault(lambda recorded: require_own_code(recorded, own, *groupers), config)
        if fault is not None:
            warn(f"it is not checked that a JobModel can be made: {fault}")
            return
        require_model(with_own_places(config, own), before, topics)

    return check


def require_model(
    config: Config,
    before: PreviousAssignment = NOTHING,
    topics: Mapping[SystemStream, str] = MappingProxyType({}),
) -> None:
    """Require that ``config`` and its inputs, as Kafka has them now, make a JobModel.

    ``topics``: {input that the job has read, perhaps before others: the broker's id of its topic}.

    ConfigError: they make none, or one that does not fit the state of the tasks ``before``; or an
    input was recreated, and may not begin again.
    UnavailableError: Kafka does not answer.
    """
    model = calculate_job_model(config, counts_now(config), before)
    require_same_tasks(config, before, model)
    if topics and keys.JOB_INPUT_RECREATED.read(config) == keys.RECREATED_REFUSE:
        seen = inputs_now(config).topic_ids
        for stream in recreated(topics, seen):
            raise refusal(stream, topics[stream], seen[stream])
