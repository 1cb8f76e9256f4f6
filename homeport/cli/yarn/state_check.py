"""Checks that a job's state, input positions, code and records fit what it runs with next.

What may not change while there is state is the one-time configuration. Source: COORD, benefit 3:
"Without persistent configuration, there is no easy way to check whether a job's current
configuration is valid or not." The coordinator stream is that configuration. It has no bound
(COORD, benefit 1), as each key and each task is a record of its own: only a record has one.
"""

from collections.abc import Mapping

from homeport.appmaster.environment.job_python import JobPython
from homeport.appmaster.job_model.input_acceptance import InputAcceptance
from homeport.appmaster.upgrade.messages import in_brief
from homeport.cli.options import note, warn
from homeport.cli.yarn import state_reset
from homeport.cli.yarn.job import Job
from homeport.cli.yarn.left_behind import left_behind
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.operators_file import with_own_places
from homeport.config.errors import ConfigError
from homeport.config.secret_names import shown_value
from homeport.config.settings.sections import JobConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import (
    CoordinatorStream,
    EmptyCoordinatorStream,
)
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.grouper.factories import has_own_grouper
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.one_time_configuration import (
    has_state,
    require_same_keys,
    require_same_tasks,
)
from homeport.job_coordinator.kafka.changelog_topics import ChangelogTopics
from homeport.job_coordinator.kafka.checkpoint_topic import CheckpointTopic
from homeport.job_coordinator.kafka.repartition_topics import RepartitionTopics
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.recorded_model import model_messages
from homeport.job_coordinator.metadata.state_facts import (
    ChangelogPartitionManager,
    StateFactManager,
    StoreSchemas,
)
from homeport.job_coordinator.metadata.state_reset import StateResetManager
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.upgrade import UpgradeState
from homeport.job_coordinator.planning.next_model import counts_now, previous_assignment
from homeport.job_coordinator.python_environment import is_same

OTHER_PACKAGE = "--other-package"


def check_state(job: Job, *, reset_state: bool) -> Mapping[str, StoreSchemas]:
    """Require that the job's state, if any, fits its configuration, or may be thrown away.

    Returns {changelog: by what it was written}, of the state that stays.
    """
    before, schemas = Config(), dict[str, StoreSchemas]()
    if job.has_stream():
        with job.stream() as store:
            before = with_own_places(ConfigManager(store).read(), job.config)
            warn(left_behind(job.config, store))
            if not reset_state:
                schemas = StateFactManager(store).schemas()
                topics = RepartitionTopics(job.config, store)
                warn(topics.check())
                topics.require_unread(previous_assignment(store).task_partitions)
                require_unchanged(store, job.config)
                check_changelogs(job.config, store)
                CheckpointTopic(job.config, store).check()
                warn(InputAcceptance(job.config, store).check())
    elif not reset_state:
        check_changelogs(job.config, EmptyCoordinatorStream())
        topics = RepartitionTopics(job.config, EmptyCoordinatorStream())
        topics.check()
        topics.require_unread({})
    if reset_state:
        deleted = state_reset.state_topics(before, job.config)
        state_reset.check_topics(deleted, job.config, before)
    return schemas


def announce(job: Job, forms: Mapping[str, str]) -> None:
    """Admit values of further schemas from the job's containers; ``forms``: {store: form}."""
    if not forms:
        return
    stores = StorageConfig.of(job.config).stores
    with job.stream() as stream:
        stream.write(
            [
                StateFactManager.announcement(str(stores[name].changelog), form)
                for name, form in forms.items()
            ]
        )


def check_changelogs(config: Config, stream: CoordinatorStream) -> None:
    """Require that no changelog is wrong, and none with state is gone; warn of lesser faults.

    The AM checks their partitions: it knows the tasks.
    """
    warn(ChangelogTopics(config, stream).check(None, may_be_replaced=True))


def require_unchanged(stream: CoordinatorStream, config: Config) -> None:
    """Require that ``config`` fits the state that the job has, if it has any.

    ``stream``: read to its head; nothing is written. The job's own grouper is not at hand here:
    the inputs of its tasks are not compared. ConfigError: a one-time key, the tasks, their inputs
    or their changelog partitions would change; or a reset of the state is unfinished.
    """
    StateResetManager(stream).require_finished()
    running, before = ConfigManager(stream).deployed(), previous_assignment(stream)
    if not has_state(running, before):
        return
    for error in ChangelogPartitionManager(stream).contradictions():
        raise error
    require_same_keys(running, config, before)
    if not has_own_grouper(config):
        model = calculate_job_model(config, counts_now(config), before)
        require_same_tasks(running, before, model)


def check_package(job: Job, package: str, python: JobPython, *, is_other_meant: bool) -> None:
    """Require the code and environment of the job's last upgrade, or that others are meant.

    ``package``: the sha256 of the package to submit; ``python``: the environment.
    """
    if not job.has_stream():
        return
    with job.stream() as store:
        state = UpgradeManager(store).last_state()
        packages = JobPackageManager(store)
        errors = [] if state is None else _others(state, packages, package, python, job.config)
    for error in errors:
        if not is_other_meant:
            raise error
        note(f"note: {error.rule}")


def _others(
    state: UpgradeState,
    packages: JobPackageManager,
    package: str,
    python: JobPython,
    config: Config,
) -> list[ConfigError]:
    """Return what differs from what the job ran last.

    Anything may replace what no upgrade has brought.
    """
    is_over = state.phase.is_final
    names = (state.left,) if is_over else (state.package, state.previous)
    ran = [packages.contents(name) for name in names if name is not None]
    if len(ran) < len(names):
        return []
    how = "has left the job with" if is_over else f"({state.phase.value}) was under way between"
    last = f"the last upgrade, in {state.application}, {how}"
    unless = f"{OTHER_PACKAGE} if other code is meant"
    found = []
    if package not in {contents.code for contents in ran}:
        key, codes = keys.YARN_PACKAGE_PATH, " and ".join(in_brief(c.code) for c in ran)
        rule = f"it is package {in_brief(package)}, and {last} {codes}"
        remedy = f"let it name the code of the upgrade; {unless}"
        found.append(key.error(key.read(config), rule, remedy))
    places = [contents.place for contents in ran if contents.place is not None]
    if len(places) == len(ran) and not any(is_same(place, python.value) for place in places):
        rule = f"{last} environment {' and '.join(places)}"
        remedy = f"name that one; {OTHER_PACKAGE} if another one is meant"
        found.append(ConfigError(python.key, python.value, rule, remedy))
    return found


_STAMP_BYTES = 256
"""Room for source and host of a record, and for Kafka's own fields around it."""
_SHOWN = 40


def check_record_sizes(config: Config, model: JobModel | None, limit: int) -> None:
    """Require that no record of configuration and JobModel is larger than ``limit`` bytes.

    ``limit``: what the coordinator stream takes. ``model``: None where it is not known yet.
    """
    job = JobConfig.of(config)
    remedy = (
        f"raise max.message.bytes of topic {job.coordinator_topic!r} and "
        f"systems.{job.coordinator_system}.producer.max.request.size"
    )
    for key, value in config.items():
        size = _size(wire.set_config(key, value))
        if size > limit:
            shown = f"{shown_value(key, value)[:_SHOWN]}..."
            raise ConfigError(key, shown, _rule("it", size, limit), f"shorten it, or {remedy}")
    stream = EmptyCoordinatorStream()
    for message in model_messages(model, stream, has_standby_changelogs=False) if model else ():
        size = _size(message)
        if size <= limit:
            continue
        rule = _rule(f"{message.type} {message.key[:200]}", size, limit)
        if message.type != MessageType.SET_TASK_PARTITION:
            raise ConfigError(message.type, message.key, rule, remedy)
        raise keys.TASK_BROADCAST_INPUTS.error(
            config.get(keys.TASK_BROADCAST_INPUTS.name),
            rule,
            f"broadcast to fewer tasks, or {remedy}",
        )


def _rule(what: str, size: int, limit: int) -> str:
    return f"{what} would be a record of {size} bytes; the coordinator stream takes {limit} at most"


def _size(message: CoordinatorStreamMessage) -> int:
    key, value = wire.encode(message)
    return len(key) + len(value or b"") + _STAMP_BYTES
