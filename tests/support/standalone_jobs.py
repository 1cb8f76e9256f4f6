"""A counting job on a real broker whose processors a test starts itself, as processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from check_history.reading import values_in
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from forked_tool import MODULE, run_forked
from stream_containers import COUNTER, until_led
from topic_records import committed
from waiting import until

DEADLINE_S = 120.0
PARTITIONS = 4


@dataclass
class StandaloneJob:
    """Counts each key of its input; ``close`` in any case."""

    servers: str
    folder: Path
    name: str
    config: Path
    sent: Counter[str] = field(default_factory=Counter)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(
        self, command: str, name: str, *arguments: str, location: str = "here"
    ) -> subprocess.Popen[bytes]:
        """``homeport COMMAND`` of the job runs; its log is ``<name>.log`` in the job's folder."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "package"),
            "LOGGED_STORE_BASE_DIR": str(self.folder / f"stores-{location}"),
        }
        work = f"--work-dir={self.folder / 'work'}"
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", MODULE, command, f"--config-path={self.config}"),
                    *(work, *arguments),
                ],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
            )
        self.started.append(process)
        return process

    def processor(self, name: str, location: str = "here") -> subprocess.Popen[bytes]:
        """A processor of that id."""
        more = ("--processor-id", name, "--config", f"job.location-id={location}")
        return self.run("run-processor", name, *more, location=location)

    def tool(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """``homeport`` with the job's file; ``environment``: laid over this process's own."""
        own = {**os.environ, "LOGGED_STORE_BASE_DIR": str(self.folder / "stores-here")}
        words = [*arguments, f"--config-path={self.config}"]
        return run_forked(words, {**own, **(environment or {})}, limit_s=DEADLINE_S)

    def produce(self, rounds: int, topic: str = "in") -> None:
        """So many records for each of three keys of each partition."""
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})
        for number in range(rounds):
            for partition in range(PARTITIONS):
                key = f"{partition}-{number % 3}"
                self.sent[key] += 1
                producer.produce(f"{self.name}-{topic}", b"x", key.encode(), partition=partition)
        assert producer.flush(DEADLINE_S) == 0

    def counted(self) -> Counter[str]:
        """{key: its last committed count}."""
        found: Counter[str] = Counter()
        for record in committed(self.servers, f"{self.name}-out", PARTITIONS):
            found[(record.key() or b"").decode()] = int(record.value() or b"0")
        return found

    def until_counted(self) -> None:
        """Each key was counted as often as it was sent; no more is ever said."""
        self.until(lambda: self.counted() == self.sent, lambda: (self.counted(), self.sent))

    def until(self, what: Callable[[], bool], story: Callable[[], object] = str) -> None:
        """Returns when ``what`` holds; fails with the logs of all processors where it does not."""
        until(what, lambda: f"{story()}\n{self.logs()}", DEADLINE_S, every_s=0.1)

    def logs(self) -> str:
        """Return what all processors and containers have logged."""
        found = []
        for file in sorted([*self.folder.glob("*.log"), *self.folder.glob("work/*/*.log")]):
            with contextlib.suppress(FileNotFoundError):  # a start renames its log
                found.append(f"--- {file.name}\n{file.read_text(encoding='utf-8')}")
        return "\n".join(found)

    def history(self, event: str) -> list[dict[str, object]]:
        """The lines of one event, in the order of time."""
        files = self.folder.glob("stores-*/*/.history/*.jsonl")
        found = [line for file in files for line in values_in(file) if line["event"] == event]
        return sorted(found, key=lambda line: line["ts_ms"])

    def started_by(self, name: str) -> int:
        """How many incarnations of the processor have started."""
        return sum(line["processor_id"] == name for line in self.history("started"))

    def stop(self, *processes: subprocess.Popen[bytes]) -> None:
        """Each of them ends in order."""
        for process in processes:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(DEADLINE_S) for process in processes] == [0] * len(processes), (
            self.logs()
        )

    def close(self) -> None:
        """No process is left."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait(DEADLINE_S)


def on_zookeeper(connect: str, session_ms: int = 3_000) -> dict[str, str]:
    """Return the keys of a job whose processors meet there, with short times."""
    return {
        "job.coordinator.zk.connect": connect,
        "job.coordinator.zk.session.timeout.ms": str(session_ms),
        "job.debounce.time.ms": "300",
    }


@contextmanager
def standalone_job(
    servers: str, folder: Path, more: Mapping[str, str], code: str = COUNTER
) -> Iterator[StandaloneJob]:
    """A job for a block. ``more``: further keys."""
    name = f"job{uuid.uuid4().hex[:10]}"
    keys = {
        "job.name": name,
        "job.default.system": "kafka",
        "task.class": "user_job:Counter",
        "task.inputs": f"kafka.{name}-in",
        "task.transaction.ms": "50",
        "systems.kafka.consumer.bootstrap.servers": servers,
        "systems.kafka.samza.offset.default": "oldest",
        "systems.kafka.default.stream.replication.factor": "1",
        "stores.counts.factory": "rocksdb",
        "stores.counts.changelog": f"kafka.{name}-changelog",
        "stores.counts.key.serde": "string",
        "stores.counts.msg.serde": "long",
        **more,
    }
    path = folder / "job.properties"
    path.write_text("".join(f"{k}={v}\n" for k, v in keys.items()), encoding="utf-8")
    (folder / "package").mkdir()
    (folder / "package" / "user_job.py").write_text(
        code.replace('"out"', f'"{name}-out"'), encoding="utf-8"
    )
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(f"{name}-{kind}", PARTITIONS, 1) for kind in ("in", "out")]
    for future in admin.create_topics(topics).values():
        future.result(DEADLINE_S)
    for topic in topics:
        for partition in range(PARTITIONS):
            until_led(admin, TopicPartition(topic.topic, partition))
    job = StandaloneJob(servers, folder, name, path)
    try:
        yield job
    finally:
        job.close()
