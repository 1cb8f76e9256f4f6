"""User code that raises SystemExit, or anything else that is no Exception, has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from homeport.config.errors import ConfigError
from homeport.container.api import BATCH_SCHEMA, IncomingMessage, StreamTask
from homeport.container.callables import TaskFailedError
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation import container_runner as stream_container
from homeport.container.incarnation.warm_up import GettingReady
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.records import BadRecords, InputMessages
from homeport.container.processing.stream_task_instance import StreamTaskInstance, StreamTaskParts
from homeport.container.processing.task_instance import Context, Outputs, Requests
from homeport.container.serde.serdes import Serde, SerdeFailedError
from homeport.container.spark import micro_batch
from homeport.container.spark.faults import Named
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.job_coordinator.model.ids import TaskName

ROW = {
    "task": "T",
    "key": b"k",
    "value": b"v",
    "system": "kafka",
    "stream": "in",
    "partition": 0,
    "offset": 7,
    "timestamp": 0,
}
ROWS = pa.Table.from_pylist([ROW], BATCH_SCHEMA)


def _one(_rows: pa.Table) -> Iterator[IncomingMessage]:
    """A message without more."""
    yield IncomingMessage("kafka", "in", 0, 7, b"k", b"v", 0, {})


class _Exiting(StreamTask):
    """Exits at each step, as by ``sys.exit()``; ``init`` is well."""

    def process(self, *_: object) -> None:
        raise SystemExit

    def window(self, *_: object) -> None:
        raise SystemExit

    def end_of_stream(self, *_: object) -> None:
        raise SystemExit

    def close(self) -> None:
        raise SystemExit


def _instance() -> StreamTaskInstance:
    ignored = frozenset({"*", "SystemExit"})
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
    parts = StreamTaskParts(outputs, Requests(), _one, ignored, StopFlag(), CallWatch(None))
    return StreamTaskInstance(_Exiting, Context(TaskName("T"), {}, {}), parts)


@pytest.mark.parametrize(
    ("step", "call"),
    [
        ("process of in partition 0 offset 7", lambda task: task.process_batch(ROWS)),
        ("window", StreamTaskInstance.window),
        ("end_of_stream", StreamTaskInstance.end_of_stream),
        ("close", StreamTaskInstance.close),
    ],
)
def test_a_stream_task_that_exits_has_failed(
    step: str, call: Callable[[StreamTaskInstance], None]
) -> None:
    """Also where all exceptions are ignored, by ``*`` or by name: it would end a process."""
    with pytest.raises(TaskFailedError, match=f"^task 'T' failed in {step}: SystemExit$"):
        call(_instance())


def test_a_serde_that_exits_drops_no_record() -> None:
    """The container fails, also where records that cannot be read are dropped."""

    def exits(_data: bytes) -> Any:  # noqa: ANN401 - as a serde's
        raise SerdeFailedError("the serde 'm:S' failed: SystemExit: 0")

    bad = BadRecords(Outputs({"kafka"}, {"kafka"}, "kafka"), None, drop=True)
    serde = Serde("m:S", bytes, exits)
    with pytest.raises(SerdeFailedError):
        list(InputMessages(lambda *_: (None, serde), bad.met).of(ROWS))
    assert bad.dropped == 0


def test_a_pipeline_function_that_exits_is_named_by_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one line, as all that is wrong with a pipeline."""
    monkeypatch.setattr(micro_batch, "frame_of", lambda *_: None)

    def exits(_frame: object) -> Any:  # noqa: ANN401 - as a pipeline's
        raise SystemExit(3)

    session: Any = SimpleNamespace()
    pipeline = SparkPipeline(
        session, exits, Named("task.pipeline.class", "m:exits"), unordered=False
    )
    stated = r"^task\.pipeline\.class = 'm:exits': the pipeline has failed: SystemExit: 3; "
    with pytest.raises(ConfigError, match=stated):
        pipeline.run(ROWS)


@pytest.mark.parametrize("error", [SystemExit(), SystemExit(0), KeyboardInterrupt()])
def test_a_container_that_is_left_by_an_exit_has_failed(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it came from: exit code 1 with the cause, never that of a job that has finished."""

    def run() -> bool:
        raise error

    container = SimpleNamespace(shutdown_ms=1000, run=run, kill_children=lambda: None)
    monkeypatch.setattr(stream_container, "_prepared", lambda *_, **__: (container, 1))
    ready = GettingReady(LeaseMemory.endless())
    given = stream_container._Given("a permit", StopFlag(), None, ready)
    code, cause, rested = stream_container._run(given)
    assert (code, (cause or "").partition(":")[0]) == (1, type(error).__name__)
    assert rested is None
