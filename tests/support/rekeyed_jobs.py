"""Jobs on YARN that count by another key than their input has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from yarn_jobs import Job, wait_for

REKEYED = """
from homeport.container.api import StreamTask

class Groups(StreamTask):
    def init(self, context):
        self.own = context.repartition("by-group")
        self.counts = context.store("counts")

    def process(self, message, context):
        if message.stream != self.own:
            context.send("by-group", message.value, f"g{int(message.value) % 7}".encode())
            return
        key = message.key.decode()
        self.counts.put(key, (self.counts.get(key) or 0) + 1)
"""
PURGED = "task.repartition.purge.ms"


def rekeyed_job(make_job: Callable[[str], Job]) -> Job:
    """A job of two containers and their standbys that counts groups, which are in the values."""
    job = make_job("rekeyed")
    (job.package / "rekeyed_task.py").write_text(REKEYED)
    job.values |= {
        "task.class": "rekeyed_task:Groups",
        "task.repartition.by-group": "inputs",
        PURGED: "500",
        "task.commit.ms": "500",
        "job.container.count": "2",
        "job.hotstandby.enabled": "true",
    }
    return job


def right(count: int) -> dict[str, int]:
    """How often each group is in so many records."""
    return dict(Counter(f"g{number % 7}" for number in range(count)))


def counts_to(job: Job, count: int) -> None:
    """Once all is counted, no group has more than its share."""
    wait_for(lambda: sum(job.counts().values()) >= count, job)
    assert job.counts() == right(count)
