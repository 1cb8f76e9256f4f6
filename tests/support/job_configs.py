"""Configurations of jobs of which nothing runs, for tests on a real Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import MappingProxyType

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig

NO_MORE: Mapping[str, str] = MappingProxyType({})


def job_config(servers: str, keys: Mapping[str, str] = NO_MORE) -> Config:
    """Return the configuration of a job with a name of its own; ``keys`` stand above the rest."""
    return Config(
        {
            "job.name": f"job_{uuid.uuid4().hex[:12]}",
            "job.default.system": "kafka",
            "task.class": "my.task:Task",
            "task.inputs": "kafka.in",
            "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
            "systems.kafka.consumer.bootstrap.servers": servers,
            "systems.kafka.default.stream.replication.factor": "1",
            **keys,
        }
    )


def kafka_system(servers: str) -> SystemConfig:
    """Return the system ``kafka`` of such a job."""
    return SystemConfig.of(job_config(servers), "kafka")
