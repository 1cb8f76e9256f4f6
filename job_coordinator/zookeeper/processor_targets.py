"""Where the processors of standalone jobs serve their metrics, as ZooKeeper says."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.zookeeper.leader_address import (
    RegisteredProcessor,
    registered_processors,
)

_APPLICATION = "standalone"
"""In place of YARN's id, as the status of such a job has it."""
_TIMEOUT_S = 15.0


def is_standalone(config: Config) -> bool:
    """Whether processors under ZooKeeper may run the job with this file."""
    return keys.JOB_COORDINATOR_ZK_CONNECT.is_set(config)


def standalone_targets(configs: Iterable[Config]) -> list[Mapping[str, Any]]:
    """One target for each processor that is registered now.

    Raises:
        ConfigError: a configuration does not say where ZooKeeper is, or what to show it.
        RefusedError: ZooKeeper refuses the user, or gives it no right.
        UnavailableError: ZooKeeper does not answer.
    """
    return [
        target(config, processor)
        for config in configs
        for processor in registered_processors(config, _TIMEOUT_S)
        if processor.url
    ]


def target(config: Config, processor: RegisteredProcessor) -> Mapping[str, Any]:
    """The processor as Prometheus takes it; its metrics name it themselves."""
    job, place = JobConfig.of(config), urllib.parse.urlsplit(processor.url)
    return {
        "targets": [place.netloc],
        "labels": {
            "__scheme__": place.scheme,
            "__metrics_path__": f"{place.path}metrics",
            "job_name": job.name,
            "job_id": job.id,
            "application": _APPLICATION,
        },
    }
