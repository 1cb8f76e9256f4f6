"""``run-job --reset-state``: the job begins with no state and no input position.

Order (safety S4, "first raises all epochs and fences all known ids, then recreates topics"), each
step safe to be done again, as a run-job that is killed leaves the rest to the next one:

1. the coordinator stream says that a reset has begun: nothing starts until one has finished
2. this run-job takes the rank before all attempts of its submission, as an AM attempt does
   (safety A2): a driver that lives on somewhere ends, and so does a run-job that was overtaken here
3. the epochs of all processors are raised, and all incarnations that may still write are fenced
4. which task has which state, and where, is taken out of the stream (HA-YARN, guarantee 2)
5. changelogs, checkpoints and topics of repartitions are recreated: state, input position and what
   tasks have sent to each other belong together
6. the new configuration, and then: the reset has finished

The directories of the old state are known by their changelog's topic id (STORE-META).
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping

from homeport.appmaster.job_model.takeover import outrank, require_highest, stream_of
from homeport.appmaster.lease.fencing import fence_conversion, fence_everybody
from homeport.cli.yarn.submission_claim import command_rank, require_newest
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.operators_file import with_own_places
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import input_streams
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.repartition_topics import internal_topics
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_reset import (
    ResetPhase,
    StateReset,
    StateResetManager,
    permitted_incarnations,
    state_removed,
)
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.planning.deletion import changelogs_of, deleting_changelogs, fault_of
from homeport.job_coordinator.planning.next_model import create_topics


def state_topics(*configs: Config) -> dict[SystemStream, SystemConfig]:
    """Return {topic that holds state or input positions of such a job: its Kafka}, sorted.

    A configuration may be empty, or hold the rest of one that was replaced.
    """
    found: dict[SystemStream, SystemConfig] = {}
    for config in configs:
        for topic in _topics_of(config):
            found[topic] = SystemConfig.of(config, topic.system)
    return dict(sorted(found.items()))


def _topics_of(config: Config) -> Iterator[SystemStream]:
    yield from (changelog for _, changelog in changelogs_of(config))
    if keys.JOB_NAME.is_set(config):
        task = TaskConfig.of(config)
        if task.checkpoint_enabled:
            yield SystemStream(task.checkpoint_system, task.checkpoint_topic)
    yield from _repartitions_of(config)


def _repartitions_of(config: Config) -> tuple[SystemStream, ...]:
    return internal_topics(config) if keys.JOB_NAME.is_set(config) else ()


def check_topics(
    topics: Mapping[SystemStream, SystemConfig], config: Config, before: Config
) -> None:
    """Require that each of ``topics`` may be deleted: it looks like a state's, and is no input.

    ``config``: what the job is to run with. ``before``: what it ran with; empty where it never
    did. ConfigError where a topic does not, and is perhaps named by mistake.
    """
    own = {*_repartitions_of(before), *_repartitions_of(config)}
    inputs = set(input_streams(config)) - own
    deleting = {*own, *deleting_changelogs(before), *deleting_changelogs(config)}
    for topic, system in topics.items():
        admin = TopicAdmin(system)
        if topic.stream not in admin.partition_counts([topic.stream]):
            continue
        policy = admin.topic_config(topic.stream).get("cleanup.policy", "")
        fault = fault_of(topic, policy, inputs, deleting)
        if fault is None:
            continue
        rule = f"a reset of the state would delete it, and {fault}"
        remedy = "name another changelog, or delete the topic yourself"
        raise ConfigError("topic", str(topic), rule, remedy)


@contextlib.contextmanager
def taking_over(
    config: Config, submission: int, begun: StateReset
) -> Iterator[tuple[CoordinatorStreamStore, Config]]:
    """Yield the job's stream, which this command alone writes, and what the job ran with.

    ``submission``: the number that it has claimed.

    The stream records first that the phase of ``begun`` has begun; afterwards no incarnation that
    was ever permitted commits anything, and no conversion. Errors as of ``reset``.
    """
    rank = command_rank(submission)
    with stream_of(config, rank) as stream:
        stream.fence()
        stream.bootstrap()
        require_newest(stream, submission)
        before = with_own_places(ConfigManager(stream).read(), config)
        require_highest(stream, rank)  # what it has begun would stay in the stream
        permitted_incarnations(stream)  # a record that cannot be read is reported before all else
        StateResetManager(stream).write(begun)
        outrank(config, stream, rank)
        fence_everybody(stream, config.merged(before))
        fence_conversion(config.merged(before))
        yield stream, before


def reset(
    config: Config,
    model: JobModel | None,
    submission: int,
    source: str,
    require_newest: Callable[[], None],
) -> tuple[SystemStream, ...]:
    """Take all state from the job: its first container finds none, whatever lives on elsewhere.

    Returns the topics that were recreated. ``model``: calculated from nothing; None where a
    grouper of the job's own makes it: then the AM makes the topics, as those of a new job.
    ``submission``: its number, which belongs to the caller. ``source``: the writer of the
    configuration. ``require_newest`` raises where another submission has begun since: only this
    check keeps an older reset from Kafka's topics. FencedError: a later submission has taken
    over; so has what remains of the reset. HomeportError: the reset is not finished; the next
    one has to be.
    """
    begun = StateReset(submission, ResetPhase.BEGUN)
    with taking_over(config, submission, begun) as (stream, before):
        topics = state_topics(before, config)
        stream.write(state_removed(stream))
        for topic, kafka in topics.items():
            require_newest()
            TopicAdmin(kafka).delete(topic.stream)
        stream.catch_up()
        if model is not None:
            create_topics(model, stream)
        ConfigManager(stream).replace(config, source)
        StateResetManager(stream).write(StateReset(submission, ResetPhase.FINISHED))
    return tuple(topics)
