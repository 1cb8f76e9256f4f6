"""What Kafka must have before a job is started, on YARN or on this machine."""

from __future__ import annotations

from homeport.appmaster.doctor.topic_uses import topic_uses
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.used_systems import used_systems
from homeport.job_coordinator.kafka.topics import CONTACT_S, TopicAdmin


def check_kafka(config: Config) -> None:
    """Require that the job's systems answer, and that its topics exist or will be made."""
    uses = topic_uses(config)
    for name in used_systems(config):
        system = SystemConfig.of(config, name)
        admin = TopicAdmin(system, CONTACT_S)
        admin.require_reachable()
        wanted = [use for use in uses.get(name, ()) if not use.is_made]
        found = admin.partition_counts([use.name for use in wanted])
        for use in wanted:
            if use.name not in found:
                raise ConfigError(
                    use.key,
                    f"{name}.{use.name}",
                    f"topic {use.name!r} does not exist at {system.bootstrap_servers}",
                    use.remedy + _twice(name, use.name),
                )


def _twice(system: str, topic: str) -> str:
    """Return a hint where the topic's name begins with that of its system, as kafka.kafka.x."""
    bare = topic.removeprefix(f"{system}.")
    return "" if bare == topic else f", which is {bare} without its system {system}"
