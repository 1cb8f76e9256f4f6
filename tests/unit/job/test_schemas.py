"""Schemas that are declared in the place of a type."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest

from homeport import Job
from homeport.config.errors import ConfigError
from homeport.job.schemas import Avro, Json, Protobuf
from homeport.testing import TestRunner


class Order(TypedDict):
    """What type checkers know of an order."""

    amount: float


RECORD = {"type": "record", "name": "order", "fields": [{"name": "amount", "type": "double"}]}
DDL = "amount DOUBLE"


def _entries(job: Job) -> dict[str, str]:
    return {
        key.removeprefix("serializers.registry."): value
        for key, value in job.config.items()
        if key.startswith("serializers.registry.")
    }


def _job(folder: Path | None = None) -> Job:
    """A job whose file is in ``folder``."""
    if folder is None:
        return Job("schemas", kafka="k:1")
    code = "from homeport import Job\njob = Job('schemas', kafka='k:1')\n"
    names: dict[str, Any] = {"__file__": str(folder / "schemas.py"), "__name__": "schemas"}
    exec(code, names)  # noqa: S102 - so that the job is of a file there
    found: Job = names["job"]
    return found


def test_a_schema_is_an_entry_of_the_registry_of_serdes() -> None:
    """It has the name of what it is used for; the same one is one entry."""
    job = _job()
    orders = Json(DDL, of=Order)
    job.input("new.orders", key=str, value=orders)
    job.output("totals", key=str, value=Json(DDL))
    store = job.store("by-name", key=str, value=Avro(json.dumps(RECORD)))
    assert _entries(job) == {
        "new-orders-value.class": "json",
        "new-orders-value.schema": DDL,
        "by-name-value.class": "avro",
        "by-name-value.schema": json.dumps(RECORD, separators=(",", ":")),
    }
    assert job.config["systems.kafka.streams.totals.samza.msg.serde"] == "new-orders-value"
    assert job.config["stores.by-name.msg.serde"] == "by-name-value"
    assert repr(orders) == "Json('amount DOUBLE')"
    assert repr(store).startswith("Store('by-name', key=str, value=Avro(")


def test_the_text_of_a_file_goes_into_the_configuration(tmp_path: Path) -> None:
    """Its folder is that of the job's file; the entry has the name of the file."""
    (tmp_path / "orders.avsc").write_text(json.dumps(RECORD, indent=2), encoding="utf-8")
    (tmp_path / "totals.ddl").write_text("amount DOUBLE,\n  n INT\n", encoding="utf-8")
    job = _job(tmp_path)
    job.input("in", value=Avro("orders.avsc"))
    job.output("out", value=Json(Path("totals.ddl")))
    assert _entries(job) == {
        "orders.class": "avro",
        "orders.schema": json.dumps(RECORD, separators=(",", ":")),
        "totals.class": "json",
        "totals.schema": "amount DOUBLE, n INT",
    }


def test_a_registry_may_have_the_schema() -> None:
    """By its address, or the properties of its client."""
    job = _job()
    job.input(
        "in", key=Avro(registry="http://r:1"), value=Json(DDL, registry={"url": "http://r:2"})
    )
    job.output("out", value=Protobuf("shop.desc", "shop.Order", registry={"url": "http://r:3"}))
    assert _entries(job) == {
        "in-key.class": "avro",
        "in-key.schema.registry.url": "http://r:1",
        "in-value.class": "json",
        "in-value.schema": DDL,
        "in-value.schema.registry.url": "http://r:2",
        "shop-Order.class": "protobuf",
        "shop-Order.message": "shop.Order",
        "shop-Order.schema.file": "shop.desc",
        "shop-Order.schema.registry.url": "http://r:3",
    }
    assert repr(Avro(registry="http://r:1")) == "Avro('of the registry')"


def test_values_with_a_schema_are_dicts() -> None:
    """Missing fields are null; others are bad records."""
    job = _job()
    source = job.input("in", key=str, value=Avro(json.dumps(RECORD), of=Order))
    total = job.store("total", key=str, value=Json("amount DOUBLE, note STRING"))

    @job.each(source)
    def add(name: str, order: Order) -> None:
        before = total.get(name, {"amount": 0})
        total[name] = {"amount": before["amount"] + order["amount"]}

    with TestRunner(job) as runner:
        runner.send("in", key="ann", value={"amount": 5.0})
        runner.send("in", key="ann", value={"amount": 2.5})
        runner.run()
        assert runner.store("total").get("ann") == {"amount": 7.5, "note": None}


@pytest.mark.parametrize(
    ("declare", "line"),
    [
        (
            lambda job: job.input("in", value=Avro("none.avsc")),
            r"serializers\.registry\.none\.schema = 'none\.avsc': the schema cannot be read \(",
        ),
        (
            lambda job: job.input("in", value=Avro("{not json}")),
            r"serializers\.registry\.in-value\.schema = '{not json}': the schema cannot be read",
        ),
        (
            lambda job: (
                job.input("in", value=Avro("a/orders.avsc")),
                job.output("out", value=Avro("b/orders.avsc")),
            ),
            r"job\.output out = 'orders': it is Avro\('b/orders\.avsc'\), and \"?Avro\('a/orders",
        ),
        (
            lambda job: (
                job.input("in", value=Avro("long/Order.avsc")),
                job.output("out", value=Order),
            ),
            r"value of job\.output out = 'Order': it is .*, and avro has that name too",
        ),
    ],
)
def test_a_schema_that_cannot_be_had_is_refused(
    declare: Callable[[Job], object], line: str
) -> None:
    """Where the configuration is made, which containers do not."""
    job = _job()
    with pytest.raises(ConfigError, match=line):  # noqa: PT012 - either may refuse it
        declare(job)
        assert job.config
