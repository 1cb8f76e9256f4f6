"""The configurations of what benchmarks run, and one container of such a job in this process."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.container.container_job import ContainerJob
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.model.ids import ProcessorId


def config_of(servers: str, more: Mapping[str, str], name: str = "bench") -> Config:
    """Return the configuration of a job on one Kafka, with the keys ``more``."""
    return Config(
        {
            "job.name": name,
            "job.default.system": "kafka",
            "systems.kafka.samza.factory": "kafka",
            "systems.kafka.consumer.bootstrap.servers": servers,
            "systems.kafka.samza.offset.default": "oldest",
            "systems.kafka.default.stream.replication.factor": "1",
            **more,
        }
    )


def store_keys(
    store: str, changelog: str, msg_serde: str, key_serde: str = "bytes"
) -> dict[str, str]:
    """Return the keys of a store on RocksDB; ``changelog``: its topic."""
    return {
        f"stores.{store}.factory": "rocksdb",
        f"stores.{store}.changelog": f"kafka.{changelog}",
        f"stores.{store}.key.serde": key_serde,
        f"stores.{store}.msg.serde": msg_serde,
    }


def container_of(config: Config, inputs: Mapping[str, int]) -> ContainerJob:
    """Return the one container of a job; ``inputs``: {topic: its number of partitions}."""
    counts = {SystemStream("kafka", topic): count for topic, count in inputs.items()}
    return ContainerJob.of(calculate_job_model(config, counts, NOTHING), ProcessorId("0"))
