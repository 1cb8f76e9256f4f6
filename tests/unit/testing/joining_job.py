"""A job that joins flights with reference data: what the tests of adjunct stores run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.container.api import (
    IncomingMessage,
    KeyValueExtractor,
    KeyValueExtractorFactory,
    KeyValueStore,
    MessageCollector,
    ReadableStore,
    StreamTask,
    TaskContext,
    TaskCoordinator,
)


class Join(StreamTask):
    """Sends each flight with its plane's model and its airline's name; counts flights per plane."""

    def init(self, context: TaskContext) -> None:
        """Takes the stores."""
        self.planes: ReadableStore = context.store("planes")
        self.airlines: ReadableStore = context.store("airlines")
        self.counts: KeyValueStore = context.store("counts")
        self.writable: KeyValueStore = context.store("planes")

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """One row; the airline "write" is a task's fault."""
        del coordinator
        tail, airline = message.key, message.value["airline"]
        if airline == "write":
            self.writable.put(tail, {"model": "x"})
        count = (self.counts.get(tail) or 0) + 1
        self.counts.put(tail, count)
        plane = self.planes.get(tail, {"model": "-"})
        name = self.airlines.get(airline) or "-"
        collector.send("out", f"{plane['model']}/{name}/{count}", tail)


class Models(KeyValueExtractorFactory):
    """Keeps the model alone, of planes that are no balloons; makes ``_Model``."""

    def get_key_value_extractor(self, config: Mapping[str, str]) -> KeyValueExtractor:
        """One for a task."""
        assert config["task.inputs"]
        return _Model()


class _Model(KeyValueExtractor):
    def get_key(self, message: IncomingMessage) -> Any:  # noqa: ANN401 - the type is the serde's
        if message.value == "burst":
            raise ValueError("burst found")
        return None if message.key.startswith("balloon") else message.key

    def get_value(self, message: IncomingMessage) -> Any:  # noqa: ANN401 - as above
        return None if message.value is None else {"model": message.value["model"]}


def config(factory: str = "rocksdb", **more: str) -> dict[str, str]:
    """The keys of the job; of ``more``, ``__`` stands for a dot.

    ``planes``: each task has its part. ``airlines``: the container has it whole.
    """
    return {
        "task.inputs": "kafka.flights, kafka.planes",
        "task.broadcast.inputs": "kafka.airlines#[0-1]",
        "systems.kafka.samza.key.serde": "string",
        "systems.kafka.samza.msg.serde": "json",
        "systems.kafka.streams.airlines.samza.msg.serde": "string",
        "systems.kafka.streams.out.samza.msg.serde": "string",
        "systems.kafka.samza.offset.default": "oldest",
        "systems.kafka.streams.planes.samza.bootstrap": "true",
        "systems.kafka.streams.airlines.samza.bootstrap": "true",
        "stores.planes.factory": factory,
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "json",
        "stores.planes.adstore.input": "kafka.planes",
        "stores.airlines.factory": factory,
        "stores.airlines.key.serde": "string",
        "stores.airlines.msg.serde": "string",
        "stores.airlines.adstore.input": "kafka.airlines",
        "stores.counts.factory": "rocksdb",
        "stores.counts.key.serde": "string",
        "stores.counts.msg.serde": "integer",
        "stores.counts.changelog": "kafka.counts",
        **{name.replace("__", "."): value for name, value in more.items()},
    }


PARTITIONS = {"kafka.flights": 2, "kafka.planes": 2, "kafka.airlines": 2, "kafka.counts": 2}
"""Of each topic of the job."""
