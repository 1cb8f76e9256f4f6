"""A stateful stream processor for Python whose state stays on its machines.

The names that a job imports. They are loaded at their first use: the processes of a running job
import parts of this package that need no job. ``homeport.windows`` and ``homeport.testing`` have
the names for windows and for tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.container.api import (
        BATCH_SCHEMA,
        AdjunctDataStoreManager,
        AdjunctDataStoreManagerFactory,
        AdjunctEntries,
        BaseStorageManager,
        BatchTask,
        Counter,
        Gauge,
        HeaderPairs,
        Headers,
        Histogram,
        IncomingMessage,
        KeyValueExtractor,
        KeyValueExtractorFactory,
        KeyValueIterator,
        KeyValueStore,
        MessageCollector,
        Metrics,
        OffsetManager,
        Partition,
        Partitioner,
        ReadableStore,
        ReadOnlyStoreError,
        RecordTooLargeError,
        Scheduler,
        StreamTask,
        TaskContext,
        TaskCoordinator,
        Timer,
        header_pairs,
    )
    from homeport.job.declaration import Job
    from homeport.job.kafka import Kafka, env
    from homeport.job.schemas import Avro, Json, Protobuf

    __version__: str

__all__ = [
    "BATCH_SCHEMA",
    "AdjunctDataStoreManager",
    "AdjunctDataStoreManagerFactory",
    "AdjunctEntries",
    "Avro",
    "BaseStorageManager",
    "BatchTask",
    "Counter",
    "Gauge",
    "HeaderPairs",
    "Headers",
    "Histogram",
    "IncomingMessage",
    "Job",
    "Json",
    "Kafka",
    "KeyValueExtractor",
    "KeyValueExtractorFactory",
    "KeyValueIterator",
    "KeyValueStore",
    "MessageCollector",
    "Metrics",
    "OffsetManager",
    "Partition",
    "Partitioner",
    "Protobuf",
    "ReadOnlyStoreError",
    "ReadableStore",
    "RecordTooLargeError",
    "Scheduler",
    "StreamTask",
    "TaskContext",
    "TaskCoordinator",
    "Timer",
    "env",
    "header_pairs",
]
_API = "homeport.container.api"
_ELSEWHERE = {
    "Avro": "homeport.job.schemas",
    "Job": "homeport.job.declaration",
    "Json": "homeport.job.schemas",
    "Kafka": "homeport.job.kafka",
    "Protobuf": "homeport.job.schemas",
    "env": "homeport.job.kafka",
}

if not TYPE_CHECKING:  # else a type checker would take any name

    def __getattr__(name: str) -> object:
        """Return a public name, from the module that has it; or the version installed."""
        if name == "__version__":
            return import_module("importlib.metadata").version("homeport")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_ELSEWHERE.get(name, _API)), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
