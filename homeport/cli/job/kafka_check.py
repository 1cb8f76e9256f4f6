"""What Kafka must have before a job is started, on YARN or on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass

from homeport.appmaster.doctor.kafka_checks import TopicUse, absent_remedy
from homeport.appmaster.doctor.topic_uses import topic_uses
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.used_systems import used_systems
from homeport.job_coordinator.kafka.topics import CONTACT_S, TopicAdmin


@dataclass(frozen=True, slots=True)
class Absent:
    """A topic that ``system``, with its brokers ``servers``, lacks."""

    system: str
    servers: str
    use: TopicUse


def check_kafka(config: Config) -> None:
    """Require that the job's systems answer, and that its topics exist or will be made.

    ConfigError: some do not; the line names them all.
    """
    uses = topic_uses(config)
    absent: list[Absent] = []
    for name in used_systems(config):
        system = SystemConfig.of(config, name)
        admin = TopicAdmin(system, CONTACT_S)
        admin.require_reachable()
        wanted = [use for use in uses.get(name, ()) if not use.is_made]
        found = admin.partition_counts([use.name for use in wanted])
        servers = system.bootstrap_servers
        absent += [Absent(name, servers, use) for use in wanted if use.name not in found]
    if absent:
        raise refusal(absent)


def refusal(absent: Sequence[Absent]) -> ConfigError:
    """Return the one line for all topics that are not there, at least one.

    It has the key of the first one, and behind a topic of another key that key.
    """
    key = absent[0].use.key
    value = ",".join(f"{each.system}.{each.use.name}" for each in absent if each.use.key == key)
    places: dict[str, list[str]] = {}
    for each in absent:
        of_key = "" if each.use.key == key else f" ({each.use.key})"
        places.setdefault(each.servers, []).append(f"{each.use.name!r}{of_key}")
    is_one = len(absent) == 1
    rule = "topic {} does not exist at {}" if is_one else "topics {} do not exist at {}"
    rules = [rule.format(", ".join(names), servers) for servers, names in places.items()]
    topic = absent[0].use.name if is_one else "TOPIC"
    how = f" (homeport local send {topic} KEY=VALUE on a local cluster, else kafka-topics --create)"
    hints = [_twice(each, "which" if is_one else each.use.name) for each in absent]
    remedy = absent_remedy([each.use for each in absent], how)
    return ConfigError(key, value, ", ".join(rules), remedy + "".join(hints))


def _twice(absent: Absent, name: str) -> str:
    """Return a hint where the topic's name begins with that of its system, as kafka.kafka.x.

    ``name``: what the hint calls the topic.
    """
    bare = absent.use.name.removeprefix(f"{absent.system}.")
    is_twice = bare != absent.use.name
    return f", {name} is {bare} without its system {absent.system}" if is_twice else ""
