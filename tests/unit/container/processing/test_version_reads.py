"""What the history says of the versions that tasks read, by the engines that they read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from homeport.container.adjunct.version_text import PARTS_KEY, parts_text
from homeport.container.adjunct.versions import PartitionEnd, Progress
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.processing.adjunct_feed import VersionReads
from homeport.container.storage.adjunct.filled_store import FilledStore
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from tests.unit.container.adjunct.adjuncts import adjunct

_P0 = SystemStreamPartition("kafka", "airlines", 0)


class _Store:
    """A store of one partition, whose tasks read ``engine``."""

    def __init__(self) -> None:
        self.name = "airlines/container-0"
        self.topic_id = "t1"
        self.planned = SimpleNamespace(
            store=adjunct("airlines", is_broadcast=True), partitions=(_P0,)
        )
        self.version: int | None = None
        self.entries = SimpleNamespace(engine=InMemoryStore())

    def serve(self, version: int, following: int, end: PartitionEnd = PartitionEnd.ENDED) -> None:
        """Tasks read a version that stands there."""
        engine = InMemoryStore()
        engine.write({PARTS_KEY: parts_text({_P0: Progress(following, end=end)}).encode()}, None)
        self.version, self.entries.engine = version, engine

    def facts(self) -> Any:  # noqa: ANN401 - of it the version alone
        """Of them the version."""
        return SimpleNamespace(version=self.version)


def test_each_other_version_is_said_once_with_the_batch_that_reads_it() -> None:
    """None where there is none; a switch within a batch is said with the same batch."""
    store, reads, said = _Store(), VersionReads(), list[dict[str, Any]]()
    stores = [cast("FilledStore", store)]

    def note(batch: int) -> list[tuple[object, ...]]:
        said.clear()
        reads.note(stores, batch, lambda event, **fields: said.append({"event": event, **fields}))
        return [(e["event"], e["batch"], e["version"], e["parts"]) for e in said]

    assert note(1) == [("version-read", 1, None, {})]
    assert note(2) == []
    store.serve(1, 50)
    ended = {"kafka.airlines.0": {"next": 50, "records": 0, "left": "ended"}}
    assert note(3) == [("version-read", 3, 1, ended)]
    assert said[0]["store"] == "airlines/container-0"
    assert (said[0]["topic_id"], said[0]["partitions"]) == ("t1", ["kafka.airlines.0"])
    store.serve(2, 70, PartitionEnd.OPEN)
    (event,) = note(3)
    assert event[1:3] == (3, 2)
    assert said[0]["parts"]["kafka.airlines.0"]["left"] == "open"
