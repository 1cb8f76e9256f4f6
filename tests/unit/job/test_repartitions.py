"""Repartitions of a job in Python: sent to like outputs, read like inputs."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from homeport import Job
from homeport.config.errors import ConfigError
from homeport.config.settings.validation import validate
from homeport.container.api import IncomingMessage
from homeport.job.handles import OutsideOfCallError
from homeport.testing import Record, TestRunner


@dataclasses.dataclass
class Flight:
    """One flight, under the plane's name."""

    tail: str
    miles: int


job = Job("miles", kafka="broker:9092", keys={"task.commit.ms": 500})
flights = job.input("flights", key=str, value=dict)
by_airport = job.repartition("by-airport", key=str, value=Flight)
totals = job.output("totals", key=str, value=int)
miles = job.store("miles", key=str, value=int)


@job.each(flights)
def send_on(_tail: str, flight: dict[str, object], message: IncomingMessage) -> None:
    """Each goes on to its airport."""
    known = Flight(str(flight["tail"]), int(str(flight["miles"])))
    by_airport.send(str(flight["to"]), known, timestamp=message.timestamp)


@job.each(by_airport)
def add(airport: str, flight: Flight) -> None:
    """Miles by airport, from whatever plane."""
    miles[airport] = miles.get(airport, 0) + flight.miles
    totals.send(airport, miles[airport])


def test_a_repartition_is_keys_of_the_job() -> None:
    """Of the types that were given; it is no declared output, nor one of task.inputs."""
    config = job.config
    own = {key: value for key, value in config.items() if key.startswith("task.repartition.")}
    assert own == {
        "task.repartition.by-airport": "inputs",
        "task.repartition.by-airport.key.serde": "string",
        "task.repartition.by-airport.msg.serde": "Flight",
    }
    assert (config["task.inputs"], config["task.outputs"]) == ("kafka.flights", "kafka.totals")
    assert validate(config) == ()
    assert str(by_airport) == "by-airport"


@pytest.mark.parametrize("job_id", ["1", "other_2"])
def test_functions_get_what_others_have_sent(job_id: str) -> None:
    """Whatever the job's id, which is part of the topic's name; a crash counts nothing twice."""
    with TestRunner(job, partitions=3, overrides={"job.id": job_id}) as runner:
        for number in range(30):
            flight = {"tail": f"N{number}", "to": f"A{number % 4}", "miles": number}
            runner.send("flights", key=f"N{number}", value=flight, timestamp=1_600_000_000_000)
        runner.crash_before("commit")
        runner.restart()
        runner.run()
        last = {record.key: record.value for record in runner.output("totals")}
        assert last == {f"A{n}": sum(range(n, 30, 4)) for n in range(4)}
        sent = runner.output("by-airport")
        assert len(sent) == 30
        assert {record.timestamp for record in sent} == {1_600_000_000_000}


def test_a_function_of_batches_knows_the_records_by_the_topic() -> None:
    """Which is known in a call alone."""
    other = Job("batches", kafka="broker:9092")
    source = other.input("flights", key=str)
    own = other.repartition("own", partitions=2)
    out = other.output("out")
    with pytest.raises(ConfigError, match="a function of batches gets the records of all inputs"):
        other.batch(source)

    @other.batch(source, own)
    def batch(table: pa.Table) -> None:
        for key, stream in zip(*(table[n].to_pylist() for n in ("key", "stream")), strict=True):
            if stream == own.topic:
                out.send(key, b"again")
            else:
                own.send(key, b"once")

    with TestRunner(other) as runner:
        runner.send("flights", key="N1")
        runner.run()
        assert runner.output("own") == [Record(b"N1", b"once")]
        assert runner.output("out") == [Record(b"N1", b"again")]
    with pytest.raises(OutsideOfCallError, match="the repartition own of the job 'batches'"):
        assert own.topic


def test_a_coroutine_may_read_a_repartition() -> None:
    """And send to it."""
    other = Job("waiting", kafka="broker:9092")
    source = other.input("flights", key=str)
    own = other.repartition("own", key=str, value=str)
    out = other.output("out", key=str, value=str)

    @other.each(source)
    async def first(key: str, _value: bytes) -> None:
        own.send(f"{key}!", "x")

    @other.each(own)
    async def second(message: IncomingMessage) -> None:
        out.send(message.key, message.value)

    with TestRunner(other) as runner:
        runner.send("flights", key="N1")
        runner.run()
        assert runner.output("out") == [Record("N1!", "x")]


def test_what_cannot_be_is_refused_where_it_is_declared() -> None:
    """In one line; nothing of the refused one stays."""
    other = Job("refused", kafka="broker:9092")
    source = other.input("flights", key=str)
    for name in ("a.b", "a b", ""):
        with pytest.raises(ConfigError, match="letters, digits, '_' and '-' only"):
            other.repartition(name)
    with pytest.raises(ConfigError, match="it must be a whole number, from 1 on"):
        other.repartition("own", partitions=0)
    own = other.repartition("own")
    with pytest.raises(ConfigError, match="it is a repartition already"):
        other.repartition("own", key=str)
    with pytest.raises(ConfigError, match="it has a repartition already"):
        other.pipeline(source)
    other.each(source)(lambda _message: None)
    with pytest.raises(ConfigError, match=r"kafka\.__homeport_repartition_refused_1_own"):
        TestRunner(other)
    other.each(own)(lambda _message: None)
    TestRunner(other)
    piped = Job("piped", kafka="broker:9092")
    piped.input("flights")
    piped.sql("SELECT * FROM flights")
    with pytest.raises(ConfigError, match="it has a pipeline already"):
        piped.repartition("own")
