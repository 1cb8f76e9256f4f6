"""One container's view of a JobModel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from small_jobs import LOGGED, job_of, model_of, store_keys, task_of

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import SpareKind
from homeport.job_coordinator.grouper.standby_models import temporary_standby
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import JobModel, TaskMode

KEYS = {
    **LOGGED,
    **store_keys("s", "string", msg_serde="json", changelog="kafka.log"),
    "task.inputs": "elsewhere.in",
    "systems.elsewhere.consumer.bootstrap.servers": "b:1",
    "systems.twin.producer.bootstrap.servers": "a:1",
}
TASK = task_of(0, "elsewhere.in")


def _view(over: Mapping[str, str], processor_id: str = "0") -> ContainerJob:
    return job_of({**KEYS, **over}, processor_id, TASK)


def test_the_job_knows_which_systems_a_transaction_reaches() -> None:
    """Those with the brokers of the checkpoints; input may come from anywhere.

    So may outputs go anywhere where they are no part of the transaction.
    """
    view = _view({})
    assert sorted(view.systems) == ["elsewhere", "kafka", "twin"]
    assert view.used_systems == {"elsewhere", "kafka"}
    assert view.transaction_systems == {"kafka", "twin"}
    assert view.transaction_system.name == "kafka"
    assert view.output_systems == view.transaction_systems
    assert _view({"task.exactly.once": "false"}).output_systems == {"elsewhere", "kafka", "twin"}
    assert [serde.name for serde in view.serdes(view.stores[0])] == ["string", "json"]


def test_an_unsupported_configuration_is_refused() -> None:
    """Each with its key; an unknown processor with those that the JobModel has."""
    for over, key in (
        ({"stores.s.changelog": "elsewhere.log"}, r"stores\.s\.changelog"),
        ({"stores.s.key.serde": "m:S"}, r"stores\.s\.key\.serde"),
    ):
        with pytest.raises(ConfigError, match=key):
            _view(over)
    with pytest.raises(ConfigError, match=r"'Partition 0' shares its container with tasks of"):
        job_of(KEYS, "0", replace(TASK, task_mode=TaskMode.STANDBY))
    with pytest.raises(ConfigError, match="it has none"):
        ContainerJob.of(JobModel(Config(KEYS), {}), ProcessorId("5"))
    key = "systems.elsewhere.consumer.bootstrap.servers"
    with pytest.raises(ConfigError, match=key):
        job_of({name: value for name, value in KEYS.items() if name != key}, "0", TASK)


def test_a_standby_needs_only_the_systems_it_follows() -> None:
    """R35: stores with a changelog, and the systems of these: inputs are not its matter."""
    scratch = store_keys("scratch")
    view = _view(scratch, "0-0")
    assert (view.is_standby, view.active_processor) == (True, "0")
    assert [store.name for store in view.stores] == ["s"]
    assert sorted(view.systems) == ["kafka"]
    assert [task.state_of for task in view.tasks] == ["Partition 0"]
    view = _view(scratch)
    assert (view.is_standby, len(view.stores)) == (False, 2)


def test_a_standby_keeps_the_adjunct_stores_that_a_start_may_find() -> None:
    """It reads their streams, wherever they are; one in memory would be gone with it."""
    more = {
        "task.inputs": "elsewhere.in, third.planes, third.airlines",
        "systems.third.consumer.bootstrap.servers": "c:1",
        **store_keys("planes", adstore_input="third.planes"),
        **store_keys("airlines", factory="in-memory", adstore_input="third.airlines"),
    }
    view = _view(more, "0-0")
    assert list(view.adjuncts) == ["planes"]
    assert sorted(view.systems) == ["kafka", "third"]
    assert [store.name for store in view.stores] == ["s"]
    assert sorted(_view(more).adjuncts) == ["airlines", "planes"]


def test_a_spark_waits_where_the_role_s_key_asks_for_it() -> None:
    """Beside standbys and beside active containers by a key each; not without a pipeline."""
    active = {"job.container.prewarm": "true"}
    standby = {"job.hotstandby.prewarm": "true"}
    pipeline = {"task.pipeline.class": "m:p"}
    assert _view({}).spare is SpareKind.PLAIN
    assert _view(active).spare is SpareKind.PLAIN
    assert _view(pipeline | standby).spare is SpareKind.SPARK
    assert _view(pipeline | active).spare is SpareKind.WARM
    for over, kind in ((active, SpareKind.SPARK), (standby, SpareKind.WARM)):
        assert _view(pipeline | over, "0-0").spare is kind


@pytest.mark.parametrize(
    ("memory_mb", "kind"), [("1240", SpareKind.SPARK), ("1280", SpareKind.WARM)]
)
def test_a_spark_waits_beside_a_temporary_standby_that_has_room(
    memory_mb: str, kind: SpareKind
) -> None:
    """Whatever the keys say: its active comes for certain."""
    keys = {"task.pipeline.class": "m:p", "cluster-manager.container.memory.mb": memory_mb}
    model = model_of({**KEYS, **keys}, TASK)
    standby = temporary_standby(model.containers[ProcessorId("0")])
    model = replace(model, containers={**model.containers, standby.processor_id: standby})
    assert ContainerJob.of(model, standby.processor_id).spare is kind
