"""An incarnation that was cut off: its last accepted write, its end, and its successor's fence.

Times are of one machine's wall clock: the broker's own, of each batch that it takes (where the
topics are stamped by it), the test's own of the process's end, and those of the histories that the
job's processes write.
"""

from __future__ import annotations

import os
import select
import threading
import time
from dataclasses import dataclass
from typing import Any

from accepted_writes import accepted_batches, writers_of
from check_history.reading import values_in
from topic_records import alter
from yarn_jobs import Job

from homeport.job_coordinator.model.incarnation import Incarnation

Fact = dict[str, Any]


def stamped_by_the_broker(job: Job) -> None:
    """From now on a batch of the job's topics has the time when the broker took it.

    Shapes: a batch's ``timestamp_ms``, in ms since 1970.
    """
    for topic in (
        f"{job.name}-out",
        f"{job.name}-counts",
        f"__samza_checkpoint_ver_1_for_{job.name}_1",
    ):
        alter(job.servers, topic, {"message.timestamp.type": "LogAppendTime"})


def stated(job: Job, event: str, incarnation: Incarnation) -> list[Fact]:
    """The events of that name of an incarnation in the histories of all nodes, in order of time."""
    wanted = (event, incarnation.processor_id, incarnation.epoch)
    found: list[Fact] = []
    for node in job.cluster.nodes:
        folder = job.cluster.state_dir(node) / f"{job.name}-1" / ".history"
        for path in folder.glob("*.jsonl"):
            facts = values_in(path)
            found += [f for f in facts if (f["event"], f["processor_id"], f["epoch"]) == wanted]
    return sorted(found, key=lambda fact: int(fact["ts_ms"]))


class ProcessEnd:
    """The end of a process, as the kernel reports it.

    The history's ``child-stopped`` may be later by the time that a launcher which is cut off waits
    for an answer of the AM: it cannot prove which of two events came first.
    """

    def __init__(self, pid: int) -> None:
        self._ended_ms: int | None = None
        self._thread = threading.Thread(target=self._watch, args=(os.pidfd_open(pid),), daemon=True)
        self._thread.start()

    @property
    def ended_ms(self) -> int:
        """When the process ended. Unit: ms since 1970."""
        self._thread.join(0)
        assert self._ended_ms is not None, "the process runs"
        return self._ended_ms

    def _watch(self, pid_fd: int) -> None:
        poll = select.poll()
        poll.register(pid_fd, select.POLLIN)
        poll.poll()
        self._ended_ms = time.time_ns() // 1_000_000
        os.close(pid_fd)


@dataclass(frozen=True)
class LastWrites:
    """How an incarnation ended. Units: ms since 1970.

    ``accepted_ms``: when the broker took its last batch of records. ``ended_ms``: when its process
    ended. ``fenced_ms``: when its successor had fenced it. ``late_count``: batches of
    it that the broker took after that; ``count``: all.
    """

    accepted_ms: int
    ended_ms: int
    fenced_ms: int
    late_count: int
    count: int

    @classmethod
    def of(cls, job: Job, gone: Incarnation, end: ProcessEnd, successor: Incarnation) -> LastWrites:
        """Those of ``gone``, whose process has ended and whose successor runs."""
        writers = writers_of(job, {successor.processor_id: successor.epoch})
        times = [
            batch.timestamp_ms
            for batches in accepted_batches(job).values()
            for batch in batches
            if not batch.is_marker and writers.get(batch.producer_id) == gone
        ]
        (fence,) = stated(job, "fenced", successor)
        fenced_ms = int(fence["ts_ms"])
        late = [t for t in times if t > fenced_ms]
        return cls(max(times), end.ended_ms, fenced_ms, len(late), len(times))

    @property
    def outlived_ms(self) -> int:
        """How long it lived after its last accepted write."""
        return self.ended_ms - self.accepted_ms
