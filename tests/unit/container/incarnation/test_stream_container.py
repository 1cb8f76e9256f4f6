"""What a stream container says of the place where it runs, as far as it goes without Kafka."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from small_jobs import KEYS, context_in, job_of
from stream_in_memory import InMemoryCoordinatorStream

from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.stream_container import StreamContainer
from homeport.container.incarnation.warm_up import GettingReady
from homeport.container.processing.loop_dependencies import LoopDependencies
from homeport.container.processing.run_loop import RunLoop
from homeport.container.processing.task_instance import Outputs
from homeport.container.spark.prepared import PipelineSettings
from homeport.container.spark.session import LocalSpark
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation

OWN, TASK = ProcessorId("0"), TaskName("Partition 0")


def _container(
    folder: Path, stop: StopFlag, ready: GettingReady, keys: dict[str, str]
) -> StreamContainer:
    """One task's, on nm1, before its start."""
    job, permit = job_of({**KEYS, **keys}), Permit(Incarnation(OWN, 4), 7, ())
    return StreamContainer(context_in(folder, job, permit, stop), ready)


class _Loop:
    """A loop that has run; its pipeline's thread has ended or not."""

    def __init__(self, *, is_over: bool) -> None:
        self._is_over = is_over

    def flush(self) -> None:
        """Nothing was processed."""

    def is_over(self, limit_s: float) -> bool:
        assert limit_s > 0
        return self._is_over


class _Spark:
    """A Spark that runs."""

    def is_sound(self) -> bool:
        return True

    def stop(self) -> None:
        """It is gone."""


@pytest.mark.parametrize("is_over", [True, False])
def test_a_spark_is_handed_on_once_no_thread_of_the_loop_uses_it(
    tmp_path: Path, *, is_over: bool
) -> None:
    """A process whose pipeline's thread still works serves no further incarnation."""
    stop, ready, spark = StopFlag(), GettingReady(LeaseMemory.endless()), _Spark()
    container = _container(tmp_path, stop, ready, {"task.pipeline.class": "m:f"})
    settings = PipelineSettings.of(container._job.config, tmp_path / "spark-4")
    assert settings is not None
    container._spark, container._settings = cast("LocalSpark", spark), settings
    stop.rest()
    parts = SimpleNamespace(
        tasks={},
        outputs=Outputs((), (), None),
        calls=None,
        plain=None,
        adjuncts=None,
        source=contextlib.ExitStack(),
        producer=SimpleNamespace(topics=frozenset({"out"}), close=lambda: None),
    )
    container._close(cast("RunLoop", _Loop(is_over=is_over)), cast("LoopDependencies", parts))
    assert container.is_over == is_over
    assert container._context.clients.written == {"out"}
    assert cast("object", ready.take(settings)) is (spark if is_over else None)


@pytest.mark.parametrize("has_affinity", [True, False])
def test_a_container_says_where_its_tasks_are_where_the_job_has_host_affinity(
    tmp_path: Path, *, has_affinity: bool
) -> None:
    """Stream and history have its host, which later starts ask for; without the key neither."""
    keys = {"job.host-affinity.enabled": str(has_affinity).lower()}
    container = _container(tmp_path, StopFlag(), GettingReady(LeaseMemory.endless()), keys)
    stream = InMemoryCoordinatorStream()
    container._write_locality(cast("CoordinatorStreamStore", stream))
    stream.catch_up()
    localities = LocalityManager(stream)
    assert localities.read_processors() == ({OWN: "nm1"} if has_affinity else {})
    assert localities.read_tasks() == ({TASK: "nm1"} if has_affinity else {})
    files = tmp_path.glob("*/.history/*")
    events = [json.loads(line) for f in files for line in f.read_text("utf-8").splitlines()]
    found = [(e["event"], e["locality"], e["tasks"], e["epoch"]) for e in events]
    assert found == ([("locality-written", "nm1", [TASK], 4)] if has_affinity else [])
