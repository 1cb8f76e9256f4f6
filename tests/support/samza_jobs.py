"""A job of Apache Samza 1.8.0, run by its LocalApplicationRunner: it counts the keys of its input.

The program is samza/SamzaJob.java; its jars are those of samza/pom.xml.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from confluent_kafka import Producer
from samza_peer import SamzaJvm
from samza_streams import READ_COMMITTED
from topic_records import committed
from yarn_jobs import PARTITIONS, Job

from homeport.container.progress.checkpoint import CheckpointValue, decode_key, decode_value

SOURCE = Path(__file__).resolve().parent / "samza" / "SamzaJob.java"
_LIMIT_S = 120.0
_SERDES = "org.apache.samza.serializers."


class Ending(StrEnum):
    """How a Samza job ends: by signals, or by ApplicationRunner.kill()."""

    SIGKILL = "kill"
    SIGTERM = "term"
    ORDERLY = "orderly"


class SamzaJob(SamzaJvm):
    """The job ``job`` before it goes on here: the same name, input, store, serdes and changelog.

    Its RocksDB directories are below ``folder``. It commits only when it is requested to.
    """

    def __init__(self, job: Job, folder: Path, more: Mapping[str, str] | None = None) -> None:
        folder.mkdir()
        self._job = job
        self.state = folder / "state"
        self._path = folder / "samza.properties"
        keys = self._keys() | dict(more or {})
        self._path.write_text("".join(f"{k}={v}\n" for k, v in keys.items()))
        super().__init__(SOURCE, folder, print, [str(self._path)])

    def _keys(self) -> dict[str, str]:
        own = self._job.values
        servers = self._job.servers
        taken = ("job.name", "job.default.system", "job.coordinator.system", "task.inputs")
        return {
            **{key: own[key] for key in taken},
            **{key: value for key, value in own.items() if key.startswith("stores.")},
            **READ_COMMITTED,
            "app.name": self._job.name,
            "processor.id": "0",
            "job.coordinator.factory": (
                "org.apache.samza.standalone.PassthroughJobCoordinatorFactory"
            ),
            "task.name.grouper.factory": (
                "org.apache.samza.container.grouper.task.SingleContainerGrouperFactory"
            ),
            "task.checkpoint.factory": (
                "org.apache.samza.checkpoint.kafka.KafkaCheckpointManagerFactory"
            ),
            "task.checkpoint.replication.factor": "1",
            "task.commit.ms": "30000",
            "job.logged.store.base.dir": str(self.state),
            "job.non-logged.store.base.dir": str(self.state.with_name("scratch")),
            "stores.counts.factory": (
                "org.apache.samza.storage.kv.RocksDbKeyValueStorageEngineFactory"
            ),
            # Samza 1.8 flushes its cache after its producer, and then takes the changelog's newest
            # offset: a record that Kafka has not taken by then is lost to the checkpoint, for Samza
            # too. Without a cache the records are sent before the flush.
            "stores.counts.object.cache.size": "0",
            "stores.counts.changelog.replication.factor": "1",
            "serializers.registry.string.class": f"{_SERDES}StringSerdeFactory",
            "serializers.registry.json.class": f"{_SERDES}JsonSerdeFactory",
            "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
            "systems.kafka.samza.offset.default": "oldest",
            "systems.kafka.samza.key.serde": "string",
            "systems.kafka.samza.msg.serde": "string",
            "systems.kafka.consumer.bootstrap.servers": servers,
            "systems.kafka.producer.bootstrap.servers": servers,
            "systems.kafka.default.stream.replication.factor": "1",
        }

    def until(self, line: str) -> None:
        """Returns when the job has written this line.

        Raises:
            AssertionError: it has not within two minutes, or has ended.
        """
        assert self._jvm.stdout is not None
        timer = threading.Timer(_LIMIT_S, self._jvm.kill)
        timer.start()
        try:
            last = "nothing"
            for said in self._jvm.stdout:
                last = said.strip()
                if last == line:
                    return
        finally:
            timer.cancel()
        raise AssertionError(f"Samza has said {last!r}, and not {line!r}: see {self.log}")

    def commit(self, processed: int) -> None:
        """Every task gets one more message, and commits; that is message ``processed`` of all."""
        producer = Producer({"bootstrap.servers": self._job.servers})
        for partition in range(PARTITIONS):
            key = f"last of {partition}"
            producer.produce(f"{self._job.name}-in", "commit", key, partition)
            self._job.produced[key] += 1
        assert producer.flush(30) == 0
        self.until(f"processed {processed}")

    def end(self, ending: Ending) -> None:
        """The job has ended so."""
        assert self._jvm.stdin is not None
        if ending is Ending.ORDERLY:
            self._jvm.stdin.write("\n")
            self._jvm.stdin.flush()
            self.until("ended")
        elif ending is Ending.SIGTERM:
            self._jvm.send_signal(signal.SIGTERM)
        else:
            self._jvm.kill()
        self._jvm.wait(_LIMIT_S)


def checkpoints_v1(job: Job) -> dict[str, CheckpointValue]:
    """{task: its last checkpoint of version 1}."""
    found = {}
    for record in committed(job.servers, f"__samza_checkpoint_ver_1_for_{job.name}_1", 1):
        key, value = decode_key(record.key() or b""), record.value()
        if key.kind == "checkpoint" and value is not None:
            found[str(key.task_name)] = decode_value(value)
    return found
