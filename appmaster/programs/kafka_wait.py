"""What begins in the AM's container waits for Kafka."""

from __future__ import annotations

import logging

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.kafka.topics import TopicAdmin

_LOOK_S = 10.0


def await_kafka(config: Config, log: logging.Logger) -> None:
    """The coordinator stream's Kafka answers. Waits for as long as it takes, and says so.

    A program that began meanwhile would only fail, again and again, until its supervisor gave the
    attempt up.
    """
    system = SystemConfig.of(config, JobConfig.of(config).coordinator_system)
    TopicAdmin(system, _LOOK_S).await_reachable(log)
