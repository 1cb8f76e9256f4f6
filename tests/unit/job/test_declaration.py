"""Job: the keys that follow from what a Python file declares, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from homeport import Avro, Job, Json
from homeport.config.errors import ConfigError
from homeport.config.settings.adjunct_section import streams_of_tasks
from homeport.config.settings.validation import validate
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask, StreamTask
from homeport.job.schemas import Schema

job = Job("daily-totals", kafka="broker:9092", containers=2, standbys=1, keys={"my.limit": 5})
orders = job.input("orders", key=str, value=dict)
totals = job.output("totals", key=str, value=dict, partitions=4)
total = job.store("total", key=str, value=float)


@job.each(orders)
def add(name: str, order: dict[str, float]) -> None:
    """Add the amount of an order."""
    total[name] = total.get(name, 0.0) + order["amount"]
    totals.send(name, {"total": total[name]})


def test_a_job_is_the_keys_that_a_properties_file_would_have() -> None:
    """They break no rule, and none of them is unknown."""
    assert dict(job.config) == {
        "job.container.count": "2",
        "job.default.system": "kafka",
        "job.host-affinity.enabled": "true",
        "job.hotstandby.enabled": "true",
        "job.hotstandby.replicationcount": "1",
        "job.name": "daily-totals",
        "my.limit": "5",
        "stores.total.changelog": "kafka.daily-totals-total-changelog",
        "stores.total.factory": "rocksdb",
        "stores.total.key.serde": "string",
        "stores.total.msg.serde": "double",
        "systems.kafka.consumer.bootstrap.servers": "broker:9092",
        "systems.kafka.samza.factory": "kafka",
        "systems.kafka.samza.offset.default": "oldest",
        "systems.kafka.streams.orders.samza.key.serde": "string",
        "systems.kafka.streams.orders.samza.msg.serde": "json",
        "systems.kafka.streams.totals.samza.key.serde": "string",
        "systems.kafka.streams.totals.samza.msg.serde": "json",
        "task.class": f"{__name__}:job",
        "task.inputs": "kafka.orders",
        "task.outputs": "kafka.totals",
        "task.outputs.create.partitions": "4",
        "yarn.package.path": __file__,
    }
    assert validate(job.config) == ()


def test_names_of_functions_decide_nothing() -> None:
    """What is settled once a job has state follows from names of streams and stores."""
    other = Job("daily-totals", kafka="broker:9092", containers=2, standbys=1)
    other.store("total", key=str, value=float)
    source = other.input("orders", key=str, value=dict)
    other.each(source)(lambda _message: None)
    settled = {key: value for key, value in job.config.items() if key.startswith("stores.")}
    assert settled.items() <= other.config.items()


def test_the_class_of_the_job_follows_from_its_functions() -> None:
    """A function of records makes a StreamTask, one of batches a BatchTask."""
    assert issubclass(_task_class(job), StreamTask)
    other = Job("batches")
    source = other.input("orders")
    other.batch(source)(lambda _table: None)
    assert issubclass(_task_class(other), BatchTask)


def test_keys_that_are_given_win() -> None:
    """Text is made of what Python has."""
    given = {"job.host-affinity.enabled": False, "task.commit.ms": 500}
    config = Job("given", keys=given).config
    assert config["job.host-affinity.enabled"] == "false"
    assert config["task.commit.ms"] == "500"


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (None, Path(__file__)),
        (".", Path(__file__).parent),
        ("code/app.zip", Path(__file__).parent / "code/app.zip"),
        ("/srv/app.zip", "/srv/app.zip"),
        ("~/app.zip", Path.home() / "app.zip"),
        ("hdfs://cluster/app.zip", "hdfs://cluster/app.zip"),
        ("file:/srv/app.zip", "file:/srv/app.zip"),
    ],
)
def test_a_package_is_named_from_the_folder_of_the_file(
    given: str | None, place: Path | str
) -> None:
    """Wherever the command runs that reads it."""
    keys = {} if given is None else {"yarn.package.path": given}
    assert Job("packed", keys=keys).config["yarn.package.path"] == str(place)


def test_brokers_come_from_the_environment_where_the_file_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`homeport local env` sets the variable."""
    monkeypatch.setenv("HOMEPORT_BOOTSTRAP_SERVERS", "local:1")
    key = "systems.kafka.consumer.bootstrap.servers"
    assert Job("here").config[key] == "local:1"
    monkeypatch.delenv("HOMEPORT_BOOTSTRAP_SERVERS")
    assert Job("there").config[key] == "localhost:9092"


def _fresh() -> tuple[Any, Any, Any]:
    made = Job("fresh")
    return made, made.input("in"), Job("other").input("in")


def _task_class(of: Job) -> type:
    return of.task_class(streams_of_tasks(of.config), has_pipeline=False)


def _twice(call: Callable[..., object], *arguments: object) -> object:
    return call(*arguments), call(*arguments)


class Amount(msgspec.Struct):
    """A value with fields."""

    amount: float


async def _coroutine() -> None:
    """Nothing awaits it."""


def _generator() -> Iterator[None]:
    yield


def _other() -> type:
    return msgspec.defstruct("Amount", [("amount", int)], module="elsewhere")


def _within() -> type:
    class Within(msgspec.Struct):
        pass

    return Within


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a type": (
        lambda: Job("fresh").input("in", key=set),
        (
            "key of job.input in = 'set': no serde carries it; give str, int, float, bytes, dict "
            "or list"
        ),
    ),
    "a type of values": (
        lambda: Job("fresh").input("in", value=set),
        (
            "value of job.input in = 'set': no serde carries it; give str, int, float, bytes, dict "
            "or list, or a dataclass, a msgspec Struct or a TypedDict"
        ),
    ),
    "a class as key": (
        lambda: Job("fresh").store("s", key=Amount, value=int),
        (
            "key of the store s = 'Amount': no serde carries it; give str, int, float, bytes, dict "
            "or list"
        ),
    ),
    "a class within a function": (
        lambda: Job("fresh").store("s", key=str, value=_within()),
        (
            "value of the store s = 'Within': containers import it, and _within.<locals>.Within is "
            "within something else; let it stand at the top level of a module"
        ),
    ),
    "two classes of one name": (
        lambda: (j := Job("fresh"), j.input("in", value=Amount), j.output("out", value=_other())),
        (
            f"value of job.output out = 'Amount': it is elsewhere:Amount, and {__name__}:Amount "
            "has that name too; give one of them another name"
        ),
    ),
    "a topic's name": (
        lambda: Job("fresh").input("a b"),
        (
            "job.input = 'a b': a topic has letters, digits, '.', '_' and '-'; give the name of a "
            "topic, as in orders"
        ),
    ),
    "an input twice": (
        lambda: _twice(Job("fresh").input, "in"),
        "job.input = 'in': it is an input already; declare it once",
    ),
    "an output twice": (
        lambda: _twice(Job("fresh").output, "out"),
        "job.output = 'out': it is an output already; declare it once",
    ),
    "a store twice": (
        lambda: _twice(partial(Job("fresh").store, key=str, value=int), "s"),
        "job.store = 's': there is such a store; give another name",
    ),
    "an input that is an output of another type": (
        lambda: (j := Job("fresh"), j.input("x", key=str), j.output("x", key=int)),
        (
            "job.output = 'x': it is declared with other types, of the serde string; give the same "
            "types in both places"
        ),
    ),
    "a value of a key": (
        lambda: Job("fresh", keys={"task.commit.ms": "soon"}),
        "task.commit.ms = 'soon': it must be a whole number; write a number, such as 10000",
    ),
    "an input of another job": (
        lambda: (f := _fresh(), f[0].each(f[2])(print)),
        "job.each = 'kafka.in': it is not an input of the job 'fresh'; declare it by job.input",
    ),
    "two functions of one input": (
        lambda: (f := _fresh(), _twice(f[0].each(f[1]), lambda _m: None)),
        "job = 'fresh': it has a function for kafka.in already; remove one of the two",
    ),
    "functions of records and of batches": (
        lambda: (f := _fresh(), f[0].each(f[1])(lambda _m: None), f[0].batch(f[1])(lambda _t: 0)),
        "job = 'fresh': it has a function of records already; remove one of the two",
    ),
    "batches of some inputs": (
        lambda: (f := _fresh(), f[0].input("more"), f[0].batch(f[1])(lambda _t: None)),
        (
            "job.batch = 'kafka.more': a function of batches gets the records of all inputs; name "
            "them all"
        ),
    ),
    "batches without an input that came later": (
        lambda: (f := _fresh(), d := f[0].batch(f[1]), f[0].input("more"), d(lambda _t: None)),
        (
            "job.batch = 'kafka.more': a function of batches gets the records of all inputs; name "
            "them all"
        ),
    ),
    "a pipeline without an input that came later": (
        lambda: (f := _fresh(), d := f[0].pipeline(f[1]), f[0].input("more"), d(lambda _f: None)),
        "job.pipeline = 'kafka.more': a pipeline gets the records of all inputs; name them all",
    ),
    "two pipelines, decorated after both were named": (
        lambda: (f := _fresh(), d := f[0].pipeline(f[1]), _twice(d, lambda _f: None)),
        "job = 'fresh': it has a pipeline already; remove one of the two",
    ),
    "too many arguments": (
        lambda: (f := _fresh(), f[0].each(f[1])(lambda _a, _b, _c, _d: None)),
        (
            "job.each = '<lambda>': it takes 4 arguments; let it take (key, value), (key, value, "
            "message) or (message)"
        ),
    ),
    "an object without a name": (
        lambda: (f := _fresh(), f[0].each(f[1])(partial(len, "record"))),
        (
            "job.each = \"functools.partial(<built-in function len>, 'record')\": it takes 0 "
            "arguments; let it take (key, value), (key, value, message) or (message)"
        ),
    ),
    "a timer's function without the timer": (
        lambda: Job("fresh").on_timer(lambda: None),
        "job.on_timer = '<lambda>': it takes 0 arguments; let it take 1",
    ),
    "a type that is none": (
        lambda: Job("fresh").input("in", value=[str]),  # type: ignore[call-overload]  # the mistake
        (
            "value of job.input in = \"[<class 'str'>]\": no serde carries it; give str, int, "
            "float, bytes, dict or list, or a dataclass, a msgspec Struct or a TypedDict"
        ),
    ),
    "a value of a key that is no text": (
        lambda: Job("fresh", keys={"task.inputs": ["a", "b"]}),
        (
            "task.inputs = \"['a', 'b']\": a value of a key is text, a number or a switch, not "
            'list; write it as a properties file does, as in "a,b"'
        ),
    ),
    "keys that are no mapping": (
        lambda: Job("fresh", keys=[("a", "b")]),  # type: ignore[arg-type]  # the mistake
        (
            "Job.keys = \"[('a', 'b')]\": they are a mapping, not list; write "
            '{"task.commit.ms": 500}'
        ),
    ),
    "keys that are text": (
        lambda: Job("fresh", keys="abc"),  # type: ignore[arg-type]  # the mistake
        "Job.keys = 'abc': they are a mapping, not str; write {\"task.commit.ms\": 500}",
    ),
    "a key that is no text": (
        lambda: Job("fresh", keys={5: 1}),  # type: ignore[dict-item]  # the mistake
        "Job.keys = '5': a key is text, not int; write {\"task.commit.ms\": 500}",
    ),
    "a schema without a format": (
        lambda: Job("fresh").input("in", value=Schema("a INT")),
        (
            "schema = \"Schema('a INT')\": it is of no format; write Json(...), Avro(...) or "
            "Protobuf(...)"
        ),
    ),
    "a number of partitions that is a switch": (
        lambda: Job("fresh").output("out", partitions=True),
        (
            "task.outputs.create.partitions = 'true': it must be a whole number; write a number, "
            "such as 0"
        ),
    ),
    "no value of a key": (
        lambda: Job("fresh", keys={"my.key": None}),
        (
            "my.key = 'None': a value of a key is text, a number or a switch, not NoneType; "
            'write it as a properties file does, as in "a,b"'
        ),
    ),
    "a number of containers": (
        lambda: Job("fresh", containers=0),
        "job.container.count = '0': it must be at least 1; write 1 or more",
    ),
    "a number of standbys": (
        lambda: Job("fresh", standbys=-1),
        "job.hotstandby.replicationcount = '-1': it must be at least 1; write 1 or more",
    ),
    "a store without a name": (
        lambda: Job("fresh").store("", key=str, value=int),
        "job.store = '': it is empty; give the store a name",
    ),
    "an input whose name is no text": (
        lambda: Job("fresh").input(5),  # type: ignore[call-overload]  # the mistake
        (
            "job.input = '5': a topic has letters, digits, '.', '_' and '-'; give the name of a "
            "topic, as in orders"
        ),
    ),
    "two numbers of partitions": (
        lambda: (j := Job("fresh"), j.output("a", partitions=3), j.output("b", partitions=4)),
        (
            "task.outputs.create.partitions = '4': another output has 3, and one number is for "
            "all; give the same, or make one of them yourself"
        ),
    ),
    "each without an input": (
        lambda: Job("fresh").each(repr),  # type: ignore[call-overload]  # the mistake
        (
            "job.each = 'repr': it is written without what it is of; write @job.each(orders), of "
            "orders = job.input(...)"
        ),
    ),
    "batch without an input": (
        lambda: Job("fresh").batch(repr),  # type: ignore[arg-type]  # the mistake
        (
            "job.batch = 'repr': it is written without what it is of; write @job.batch(orders), of "
            "orders = job.input(...)"
        ),
    ),
    "the name of an input": (
        lambda: Job("fresh").each("orders"),  # type: ignore[call-overload]  # the mistake
        (
            "job.each = 'orders': text is no input; write @job.each(orders), of orders = "
            "job.input(...)"
        ),
    ),
    "the name of a type": (
        lambda: Job("fresh").input("in", value="float"),  # type: ignore[call-overload]  # the mistake
        (
            "value of job.input in = 'float': it is text, and a type is wanted; write the type "
            "without quotes"
        ),
    ),
    "every without a time": (
        lambda: Job("fresh").every(repr),  # type: ignore[arg-type]  # the mistake
        (
            "job.every = 'repr': it must be a number of milliseconds, from 1 on; write "
            "@job.every(ms=1000)"
        ),
    ),
    "an interval of nothing": (
        lambda: Job("fresh").every(0),
        (
            "job.every = '0': it must be a number of milliseconds, from 1 on; write "
            "@job.every(ms=1000)"
        ),
    ),
    "an interval beside batches": (
        lambda: (f := _fresh(), f[0].batch(f[1])(lambda _t: None), f[0].every(5)(lambda: None)),
        "job = 'fresh': it has a function of batches already; remove one of the two",
    ),
    "batches beside an interval": (
        lambda: (f := _fresh(), f[0].every(5)(lambda: None), f[0].batch(f[1])(lambda _t: None)),
        "job = 'fresh': it has a function of intervals already; remove one of the two",
    ),
    "a coroutine at the start": (
        lambda: Job("fresh").on_start(_coroutine),
        (
            "job.on_start = '_coroutine': it is a coroutine, which never runs here; use def: only "
            "that of job.each may be one"
        ),
    ),
    "a generator at an interval": (
        lambda: Job("fresh").every(5)(_generator),
        (
            "job.every = '_generator': it is a generator, which never runs here; remove its yield: "
            "send by an output, as in totals.send(key, value)"
        ),
    ),
    "an input without a function": (
        lambda: (f := _fresh(), f[0].input("b"), f[0].each(f[1])(repr), _task_class(f[0])),
        (
            "job.each = 'kafka.b': the job has no function for its records; write one, or remove "
            "the input"
        ),
    ),
    "no function": (
        lambda: _task_class(Job("fresh")),
        "job.each is missing: the job has no function for its records; write one under @job.each",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_declaration_is_refused_where_it_stands(case: str) -> None:
    """The line names argument, value, rule and remedy; the call that is wrong raises it."""
    make, line = REFUSED[case]
    with pytest.raises(ConfigError) as refused:
        make()
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("declare", "again"),
    [
        (lambda j: j.input("x", key=str, value=set), lambda j: j.input("x", key=int)),
        (
            lambda j: j.input("x", value=Avro("[", of=dict)),
            lambda j: j.input("x", value=Json("a INT")),
        ),
        (lambda j: j.output("x", key=str, partitions=True), lambda j: j.output("x", key=int)),
        (lambda j: j.output("x", key=str, partitions=5), lambda j: j.output("x", key=int)),
        (lambda j: j.store("x", key=str, value=set), None),
        (lambda j: j.reference("x", key=str, value=int, broadcast=0), None),
        (lambda j: j.reference("taken", key=str, value=int), lambda j: j.input("taken")),
        (lambda j: j.window("x", value=int), lambda j: j.window("x", value=int, size=5)),
        (lambda j: j.window("x", value=float, gap=0), lambda j: j.window("x", value=int, gap=5)),
        (lambda j: j.dead_letters("typed"), None),
        (lambda j: j.sql("", output=Job("b").output("x")), lambda j: j.sql("SELECT 1")),
    ],
)
def test_what_is_refused_changes_nothing(
    declare: Callable[[Job], object], again: Callable[[Job], object] | None
) -> None:
    """A notebook declares it again, as it likes."""
    made = Job("fresh", kafka="k:1")
    made.input("typed", key=int)
    made.output("other", partitions=3)
    made.output("of-as-many", partitions=3)
    made.store("taken", key=str, value=int)
    before, lines = dict(made.config), dict(made._keys.lines)
    handles = list(made._calls.handles)
    with pytest.raises(ConfigError):
        declare(made)
    assert dict(made.config) == before
    assert made._keys.lines == lines
    assert made._calls.handles == handles
    if again is not None:
        again(made)


def test_handles_show_what_is_declared_and_nothing_of_how_they_work() -> None:
    """Streams, names and types; a window has the type of its values."""
    made = Job("shown", kafka="k:1")
    source, target = made.input("in"), made.output("a.b", key=str, value=Amount)
    kept, summed = made.store("s", key=str, value=int), made.window("w", value=int, size=5)
    assert source.stream == SystemStream("kafka", "in")
    assert target.stream == SystemStream("kafka", "a.b")
    assert (target.key, target.value) == (str, Amount)
    assert (summed.name, summed.value) == ("w", int)
    for handle in (target, kept, summed):
        assert {"kind", "bound"}.isdisjoint(dir(handle))
    assert not hasattr(summed, "key")
