"""What type checkers know of a declared job; mypy fails where an ignored mistake is none."""

from __future__ import annotations

from typing import Any, TypedDict, assert_type

import pytest

from homeport import Avro, IncomingMessage, Job, Json
from homeport.config.errors import ConfigError
from homeport.job.handles import Input, Output, OutsideOfCallError, Reference, Store
from homeport.job.windows import Window


class Flight(TypedDict):
    """The fields of a schema."""

    tail: str


def _longest(sum_: list[str], more: str) -> list[str]:
    return max(sum_, [more], key=len)


def test_types_follow_from_the_declarations_to_the_functions() -> None:
    """From a type, a class and a schema, to stores, outputs, windows and functions."""
    job = Job("types", kafka="k:1")
    flights = assert_type(
        job.input("in", key=str, value=Avro("a.avsc", of=Flight)), Input[str, Flight]
    )
    out = assert_type(job.output("out", value=Json("a INT")), Output[bytes, dict[str, Any]])
    total = assert_type(job.store("total", key=str, value=float), Store[str, float])
    planes = assert_type(job.reference("planes", key=str, value=int), Reference[str, int])
    miles = assert_type(job.window("miles", value=int, size=5), Window[int, int])
    words = job.window("words", value=list[str], add=_longest, init=list, size=5)
    assert_type(words, Window[str, list[str]])

    @job.each(flights)
    def right(tail: str, flight: Flight, message: IncomingMessage) -> None:
        assert_type(total.get(tail), float | None)
        assert_type(planes.get(tail, 0), int)
        total[tail] = 1
        miles.add(message, 5)
        out.send(flight["tail"].encode(), {"a": 1})

    def wrong(tail: str, flight: Flight, message: IncomingMessage) -> None:
        total[tail] = "text"  # type: ignore[assignment]  # the mistake
        planes[tail] = 5  # type: ignore[index]  # the mistake
        planes.put(tail, 5)  # type: ignore[attr-defined]  # the mistake
        miles.add(message, "text")  # type: ignore[arg-type]  # the mistake
        out.send(tail, {"a": 1})  # type: ignore[arg-type]  # the mistake
        del flight["tail"]  # type: ignore[misc]  # the mistake: it is required

    def of_another(tail: str, flight: float) -> None:
        total[tail] = flight

    job.closed(miles)(lambda _key, _value: None)
    with pytest.raises(ConfigError, match="it has a function for kafka"):
        job.each(flights)(of_another)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(OutsideOfCallError):
        wrong("a", {"tail": "a"}, IncomingMessage("k", "s", 0, 0, None, None, 0, {}))


def test_a_type_that_is_forgotten_is_no_type_that_the_variable_has() -> None:
    """Keys and values without a type are bytes, and windows without ``add`` add what they keep."""
    job = Job("forgotten", kafka="k:1")
    read: Input[bytes, str] = job.input("a")  # type: ignore[assignment]  # the mistake
    sent: Output[str, float] = job.output("a")  # type: ignore[assignment]  # the mistake
    of_key: Output[str, float] = job.output("b", key=str)  # type: ignore[assignment]  # the mistake
    kept: Window[str, int] = job.window("w", value=int, gap=3)  # type: ignore[assignment]  # the mistake
    own: Window[int, int] = job.window("own", value=int, merge=_larger, gap=3)
    names = [str(handle) for handle in (read, sent, of_key)]
    assert [*names, kept.name, own.name] == ["kafka.a", "kafka.a", "kafka.b", "w", "own"]


def _larger(older: int, newer: int) -> int:
    return max(older, newer)
