"""Adjunct stores as tables of a pipeline: by which name, with which columns, and when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.frames import EntryColumns, FrameError, StoreFrame
from homeport.container.spark.frame_columns import refuse_twins, store_columns, store_serdes
from homeport.container.spark.inputs import ALL, WHOLE
from homeport.container.spark.sql_text import identifiers
from homeport.container.spark.standing import FramesOfEachPlan, Source, StandingSources
from homeport.container.spark.work import LazyFrames, Work, function_work, sql_work

_FLIGHTS = SystemStream("kafka", "flights")
_STREAMS = {"flights": _FLIGHTS}
_MODULE = """
def tables(tables): return tables["planes"]
def frames(frames): return frames["flights"]
def named(flights, old_planes): return [flights, old_planes]
def alone(planes): return planes
def both(planes, old_planes): return planes
"""
_STORES = ("planes", "old-planes")


@pytest.fixture(autouse=True)
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in a module of the job's."""
    (tmp_path / "store_tables_job.py").write_text(_MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def _function(name: str) -> Work:
    return function_work(f"store_tables_job:{name}", _STREAMS, _STORES)


def test_a_function_names_stores_as_it_names_inputs() -> None:
    """What its parameters name it surely takes; of all tables it may read each."""
    work: Any = _function("named")
    assert (work.takes, work.stores, work.needs) == (_STREAMS, ("old-planes",), ("old-planes",))
    assert work.call({"flights": 1, "old-planes": 2}) == [1, 2]
    for name, found in (("tables", 2), ("frames", 1)):
        work = _function(name)
        assert (work.takes, work.stores, work.needs) == (_STREAMS, _STORES, ())
        assert work.call({"flights": 1, "planes": 2}) == found


@pytest.mark.parametrize(("name", "stores"), [("alone", "planes"), ("both", "planes, old-planes")])
def test_a_function_of_stores_alone_is_refused(name: str, stores: str) -> None:
    """The rows of its only parameter would be those of all inputs, by the name of a store."""
    with pytest.raises(ConfigError, match=rf"it takes adjunct stores alone \({stores}\), and"):
        _function(name)


def test_a_statement_names_stores_as_tables() -> None:
    """In any case of letters, quoted or not; not in its texts and comments."""
    text = "SELECT f.key FROM flights f JOIN Planes p ON 'old-planes' = p.key -- `old-planes`"
    work = sql_work(text, _STREAMS, _STORES)
    assert (work.takes, work.stores, work.needs) == (WHOLE, ("planes",), ("planes",))
    assert identifiers("FROM `Old-Planes`, `a``b`", [*_STORES, "a`b"]) == ["old-planes", "a`b"]
    assert sql_work("SELECT 1", _STREAMS, _STORES).stores == ()
    with pytest.raises(ConfigError, match="it takes adjunct stores alone"):
        sql_work("SELECT * FROM planes", _STREAMS, _STORES)


def test_the_frame_of_a_store_is_made_when_it_is_read_first() -> None:
    """And once."""
    made: Any = Mock(return_value="frame")
    own: Any = {"flights": 1}
    tables: Any = LazyFrames(own, {"planes": made})
    assert (tables["flights"], dict(tables), made.call_count) == (1, {"flights": 1}, 0)
    assert (tables["planes"], tables["planes"], made.call_count) == ("frame", "frame", 1)
    with pytest.raises(KeyError):
        tables["trains"]


def _job(key: str = "string", msg: str = "plane", name: str = "planes") -> Config:
    return Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "task.inputs": "kafka.flights, kafka.planes",
            f"stores.{name}.factory": "in-memory",
            f"stores.{name}.key.serde": key,
            f"stores.{name}.msg.serde": msg,
            f"stores.{name}.adstore.input": "kafka.planes",
            "serializers.registry.plane.class": "json",
            "serializers.registry.plane.schema": "model STRING",
        }
    )


def _columns(config: Config) -> Any:  # noqa: ANN401 - how they are made, or the reason
    return store_columns(store_serdes(config))["planes"]


def test_columns_are_by_the_serdes_of_the_store() -> None:
    """A schema makes a struct; an entry that is not of it is one line."""
    columns: EntryColumns = _columns(_job())
    struct = pa.struct([("model", pa.string())])
    assert columns.schema == pa.schema({"key": pa.string(), "value": struct})
    rows = columns.rows([(b"N1", b'{"model": "737", "seats": 9}')])
    assert rows.to_pylist() == [{"key": "N1", "value": {"model": "737"}}]
    with pytest.raises(FrameError, match="the value of b'N1' is not what"):
        columns.rows([(b"N1", b"[]")])
    numbers: EntryColumns = _columns(_job("long", "bytes"))
    assert numbers.schema == pa.schema({"key": pa.int64(), "value": pa.binary()})
    with pytest.raises(FrameError, match="the key of b'N1' is not"):
        numbers.rows([(b"N1", b"")])


@pytest.mark.parametrize(
    ("key", "msg", "line"),
    [
        ("string", "json", r"stores\.planes\.msg\.serde = 'json': the pipeline takes the store as"),
        ("json", "string", r"stores\.planes\.key\.serde = 'json': the pipeline takes the store as"),
    ],
)
def test_serdes_without_columns_have_a_reason(key: str, msg: str, line: str) -> None:
    """Which names the key and what would do."""
    reason = _columns(_job(key, msg))
    with pytest.raises(ConfigError, match=rf"{line} a frame.*use bytes, string"):
        raise reason


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("Flights", "the input flights"),
        ("input", "'input', the table with the rows of all inputs,"),
    ],
)
def test_two_tables_of_one_name_are_refused(name: str, what: str) -> None:
    """A store that no name of an input is like is taken."""
    refuse_twins(store_serdes(_job()), [*_STREAMS])
    stores = store_serdes(_job(name=name))
    with pytest.raises(ConfigError, match=f"{what} and the adjunct store {name} would be one"):
        refuse_twins(stores, [*_STREAMS])


def test_stores_that_are_one_parameter_are_refused() -> None:
    """As ``old-planes`` and ``old_planes`` are."""
    stores = [*store_serdes(_job(name="old-planes")), *store_serdes(_job(name="old_planes"))]
    with pytest.raises(
        ConfigError, match="the adjunct store old-planes and the adjunct store old_"
    ):
        refuse_twins(stores, [ALL])


def _held(number: int) -> StoreFrame:
    return StoreFrame(number, pa.table({"key": ["a"], "value": [number]}))


def _standing() -> Iterator[tuple[StandingSources, Mock, list[tuple[int, int]]]]:
    java: Any = Mock()
    loads: list[tuple[int, int]] = []

    def made(schema: pa.Schema) -> Source:
        frame: Any = object()
        return Source(7, frame, schema, None, schema)

    def load(source: Source, rows: pa.Table) -> None:
        loads.append((source.number, rows["value"][0].as_py()))

    yield StandingSources(java, made, load), java, loads


def test_rows_are_sent_and_plans_renewed_once_for_each_change() -> None:
    """A plan of another schema gets them too, without that they are sent again."""
    ((standing, java, loads),) = _standing()
    standing.source("planes", _held(1))
    one, other = {"planes": 1}, {"planes": 1}
    standing.renew(11, one, {"planes": _held(1), "trains": _held(5)})
    assert (loads, java.renew.call_count) == ([(7, 1)], 0)
    for _ in range(2):
        standing.renew(11, one, {"planes": _held(2)})
    standing.renew(12, other, {"planes": _held(2)})
    assert loads == [(7, 1), (7, 2)]
    assert [call.args for call in java.renew.call_args_list] == [(11,), (12,)]
    standing.untouch()
    java.untouch.assert_called_once_with(7)


def test_a_plan_that_cannot_be_renewed_is_tried_again() -> None:
    """It still counts as one of the former rows."""
    ((standing, java, _),) = _standing()
    standing.source("planes", _held(1))
    used = {"planes": 1}
    java.renew.side_effect = ValueError("no room")
    with pytest.raises(ValueError, match="no room"):
        standing.renew(11, used, {"planes": _held(2)})
    assert used == {"planes": 1}


def test_a_frame_for_plans_of_one_batch_is_made_once_for_each_change() -> None:
    """Spark reads the rows from Python then."""
    session: Any = Mock()
    frames = FramesOfEachPlan(session)
    for number in (1, 1, 2):
        frames.of("planes", _held(number))
    assert session.createDataFrame.call_count == 2
