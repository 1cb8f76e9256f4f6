"""A job moves between a properties file and a Python file: nothing that is settled changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from homeport import Avro, BatchTask, Job, Json
from homeport.config.config import Config
from homeport.config.loading.properties_format import parse_properties
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.serde.forms import forms_of

COMMON = """
job.name=moves
job.default.system=kafka
job.host-affinity.enabled=true
systems.kafka.samza.factory=kafka
systems.kafka.consumer.bootstrap.servers=k:1
systems.kafka.samza.offset.default=oldest
systems.kafka.streams.orders.samza.key.serde=string
systems.kafka.streams.orders.samza.msg.serde=json
"""
STORE = """
stores.total.factory=rocksdb
stores.total.changelog=kafka.moves-total
stores.total.key.serde=string
"""


@dataclass
class Total:
    """What a store has."""

    amount: float


AVRO = '{"type":"record","name":"t","fields":[{"name":"amount","type":"double"}]}'


def _each(job: Job, orders: Any) -> None:  # noqa: ANN401 - of any types
    job.store("total", key=str, value=float, changelog="moves-total")
    job.each(orders)(lambda _message: None)


def _batch(job: Job, orders: Any) -> None:  # noqa: ANN401 - as above
    job.store("total", key=str, value=Json("amount DOUBLE"), changelog="moves-total")
    job.batch(orders)(lambda _table: None)


def _class(job: Job, _orders: Any) -> None:  # noqa: ANN401 - as above
    job.store("total", key=str, value=Total, changelog="moves-total")

    @job.task
    class Sums(BatchTask):
        def process_batch(self, table: Any, context: Any) -> None:  # noqa: ANN401 - not called
            """Keep nothing."""


def _avro(job: Job, orders: Any) -> None:  # noqa: ANN401 - as above
    job.store("total", key=str, value=Avro(AVRO), changelog="moves-total")
    job.each(orders)(lambda _message: None)


def _window(job: Job, orders: Any) -> None:  # noqa: ANN401 - as above
    window = job.window("total", value=int, size=60_000, changelog="moves-total")
    job.closed(window)(lambda _result: None)
    job.each(orders)(lambda _message: None)


def _reference(job: Job, orders: Any) -> None:  # noqa: ANN401 - as above
    job.reference("planes", key=str, value=str)
    job.reference("airlines", key=str, value=str, broadcast=4)
    _each(job, orders)


def _pipeline(job: Job, orders: Any) -> None:  # noqa: ANN401 - as above
    planes = job.reference("planes", key=str, value=str)
    job.store("total", key=str, value=float, changelog="moves-total")
    rows = job.pipeline(orders, planes)(lambda frame, _planes: frame)
    job.each(rows)(lambda _message: None)


def _sql(job: Job, _orders: Any) -> None:  # noqa: ANN401 - as above
    out = job.output("out")
    job.sql("SELECT key, value FROM orders", output=out)


PLANES = """
stores.planes.factory=rocksdb
stores.planes.key.serde=string
stores.planes.msg.serde=string
stores.planes.adstore.input=kafka.planes
systems.kafka.streams.planes.samza.bootstrap=true
systems.kafka.streams.planes.samza.key.serde=string
systems.kafka.streams.planes.samza.msg.serde=string
"""
FORMS = {
    "each": (_each, f"{STORE}stores.total.msg.serde=double\ntask.inputs=kafka.orders"),
    "batch": (
        _batch,
        (
            f"{STORE}stores.total.msg.serde=sums\nserializers.registry.sums.class=json\n"
            "serializers.registry.sums.schema=amount  double\ntask.inputs=kafka.orders"
        ),
    ),
    "class": (
        _class,
        (
            f"{STORE}stores.total.msg.serde=t\nserializers.registry.t.class={__name__}:Total\n"
            "task.inputs=kafka.orders"
        ),
    ),
    "avro": (
        _avro,
        (
            f"{STORE}stores.total.msg.serde=t\nserializers.registry.t.class=avro\n"
            f"serializers.registry.t.schema={AVRO}\ntask.inputs=kafka.orders"
        ),
    ),
    "window": (_window, f"{STORE}stores.total.msg.serde=long\ntask.inputs=kafka.orders"),
    "reference": (
        _reference,
        (
            f"{STORE}stores.total.msg.serde=double\ntask.inputs=kafka.planes, kafka.orders\n"
            f"{PLANES}{PLANES.replace('planes', 'airlines')}"
            "task.broadcast.inputs=kafka.airlines#[0-3]"
        ),
    ),
    "pipeline": (
        _pipeline,
        (
            f"{STORE}stores.total.msg.serde=double\ntask.inputs=kafka.planes,kafka.orders\n{PLANES}"
            "task.pipeline.class=own:pipeline"
        ),
    ),
    "sql": (
        _sql,
        (
            "task.inputs=kafka.orders\ntask.pipeline.sql=SELECT key, value FROM orders\n"
            "task.pipeline.output=kafka.out"
        ),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_that_is_settled_changes_either_way(form: str) -> None:
    """Neither a key that never changes with state, nor how the bytes of a store are read."""
    declare, text = FORMS[form]
    job = Job("moves", kafka="k:1")
    declare(job, job.input("orders", key=str, value=dict))
    python = Config({"task.class": "a:b", **job.config})
    properties = Config({"task.class": "a:c", **parse_properties(COMMON + text)})
    for before, after in ((properties, python), (python, properties)):
        assert ConfigDiff.between(before, after).never_with_state == ()
    stores, others = StorageConfig.of(python).stores, StorageConfig.of(properties).stores
    assert stores.keys() == others.keys()
    for name, store in stores.items():
        other = others[name]
        assert store.changelog == other.changelog
        assert forms_of((store.key_serde, store.msg_serde)) == forms_of(
            (other.key_serde, other.msg_serde)
        )


def _declared(*, backwards: bool) -> Config:
    job = Job("order", kafka="k:1")
    names = ["b", "a", "c"]
    for name in reversed(names) if backwards else names:
        source: Any = job.input(name, key=str)
        store = job.store(f"of-{name}", key=str, value=Total)
        made: dict[str, Any] = {}
        exec(f"def {'other' if backwards else 'one'}(_key, _value): pass", made)  # noqa: S102 - a name
        job.each(source)([*made.values()][-1])
        assert store.name == f"of-{name}"
    return job.config


def test_neither_order_nor_the_names_of_functions_decide() -> None:
    """What is settled follows from the names of topics and stores."""
    one, other = _declared(backwards=False), _declared(backwards=True)
    for before, after in ((one, other), (other, one)):
        assert ConfigDiff.between(before, after).is_empty
