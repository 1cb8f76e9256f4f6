"""What windows were made with is kept with them: another span or aggregate is refused."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from homeport.container.api import StreamTask, TaskContext
from homeport.container.callables import TaskFailedError
from homeport.container.windows import Aggregate, Hopping, Session, Tumbling, Windows
from homeport.container.windows.facts import code_of, kind_of
from homeport.container.windows.window_store import WindowStore
from homeport.testing import TestRunner
from tests.unit.container.windows.window_jobs import KEPT, SUM, WindowTask, config


def _most(most: int, value: Mapping[str, int]) -> int:
    return max(most, value["n"])


def _sum(total: int, value: Mapping[str, int]) -> int:
    return total + value["n"]


_NAMED = Aggregate(int, _sum, name="sum")


def _at_work(runner: TestRunner, *times: int) -> None:
    for at in times or (5, 18):
        runner.send("kafka.in", key="a", value={"n": 3}, timestamp=at)
    runner.run()


@pytest.mark.parametrize("same_host", [True, False])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"span": Tumbling(1000)},
            {"span": Tumbling(5000)},
            "made with windows of 1000 ms every 1000 ms, and now has windows of 5000 ms every",
        ),
        ({"span": Hopping(20, 10)}, {"span": Hopping(20, 5)}, "every 10 ms, and now .* every 5 ms"),
        ({"span": Session(10)}, {"span": Session(20)}, "a gap of 10 ms, and now .* gap of 20 ms"),
        ({"span": Tumbling(10)}, {"span": Session(10)}, "every 10 ms, and now has sessions with"),
        ({}, {"emit": "update"}, "made with emit='close', and now has emit='update'"),
        ({}, {"aggregate": Aggregate(dict, _sum)}, "are a number, and now has .* are a dict"),
        (
            {"aggregate": _NAMED},
            {"aggregate": Aggregate(int, _most, name="most")},
            "aggregates named sum, and now has aggregates named most",
        ),
        (
            {"aggregate": Aggregate(int, _sum)},
            {"aggregate": Aggregate(int, _most)},
            "an aggregate whose code has changed: .* give Aggregate a name",
        ),
    ],
)
def test_a_change_of_what_windows_were_made_with_is_refused_at_the_start(
    before: dict[str, Any], after: dict[str, Any], expected: str, *, same_host: bool
) -> None:
    """In one line with its remedy, and with the old facts the job goes on; so from a changelog."""
    if before.get("span") == Tumbling(10) or isinstance(before.get("span"), Session):
        after = {"aggregate": SUM, **after}
    KEPT.update(before)
    with TestRunner(config("json"), task=WindowTask) as runner:
        _at_work(runner)
        held = dict(runner.changelog("windows"))
        KEPT.clear()
        KEPT.update(after)
        with pytest.raises(TaskFailedError, match=f"the store 'windows' .*{expected}") as error:
            runner.restart(same_host=same_host)
        assert "\n" not in str(error.value)
        assert dict(runner.changelog("windows")) == held
        KEPT.clear()
        KEPT.update(before)
        runner.restart(same_host=same_host)
        _at_work(runner)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"span": Tumbling(10)}, {"span": Hopping(10, 10)}),
        ({"emit": "update"}, {"emit": "close"}),
        ({}, {"lateness_ms": 50, "retention_ms": 100}),
        ({"aggregate": Aggregate(int, _sum)}, {"aggregate": Aggregate(int, _most, name="a")}),
        ({"aggregate": _NAMED}, {"aggregate": Aggregate(int, _most, name="sum")}),
        ({"aggregate": _NAMED}, {"aggregate": Aggregate(int, _sum)}),
        ({"aggregate": Aggregate(int, _sum)}, {"aggregate": Aggregate(float, _sum, name="a")}),
        ({"aggregate": Aggregate(lambda: None, lambda *_: 1)}, {"aggregate": _NAMED}),
    ],
)
def test_what_means_the_same_goes_on(before: dict[str, Any], after: dict[str, Any]) -> None:
    """The same windows in other words, and aggregates that are given a name."""
    KEPT.update(before)
    with TestRunner(config("json"), task=WindowTask) as runner:
        _at_work(runner)
        KEPT.clear()
        KEPT.update(after)
        for _ in range(2):
            runner.restart(same_host=False)
            _at_work(runner)


@pytest.mark.parametrize("serde", ["long", "json", "double", "string", "bytes"])
def test_a_store_of_an_earlier_release_goes_on_and_gets_its_facts(
    serde: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever values it carries; from then on they are required."""
    kind: Any = {"double": float, "string": str, "bytes": lambda n=0: b"%d" % n}.get(serde, int)
    aggregate = Aggregate(
        init=lambda: kind(0), add=lambda total, value: kind(int(total) + value["n"])
    )
    KEPT.update(aggregate=aggregate)
    with TestRunner(config(serde), task=WindowTask) as runner:
        with monkeypatch.context() as earlier:
            earlier.setattr(WindowStore, "put_facts", lambda *_: None)
            runner.restart(same_host=False)
            _at_work(runner, 5, 6)
        assert not [entry for entry in runner.changelog("windows") if entry.startswith("f/")]
        runner.restart()
        _at_work(runner, 5, 6)
        entries = [entry for entry in runner.changelog("windows") if entry.startswith("f/")]
        assert "f/span/windows of 10 ms every 10 ms" in entries
        KEPT.update(span=Tumbling(20))
        with pytest.raises(TaskFailedError, match="and now has windows of 20 ms"):
            runner.restart()


class _Two(StreamTask):
    """Has two windows in one store."""

    def init(self, context: TaskContext) -> None:
        """Makes both."""
        self.one = Windows(context, "windows", Tumbling(10), SUM, lateness_ms=0)
        self.other = Windows(context, "windows", Tumbling(10), SUM, lateness_ms=0)

    def process(self, *_arguments: object) -> None:
        """Does nothing."""


class _Again(_Two):
    """Makes its windows a second time."""

    def init(self, context: TaskContext) -> None:
        """Lets go of the first ones."""
        self.one = Windows(context, "windows", Tumbling(10), SUM, lateness_ms=0)
        del self.one
        self.one = Windows(context, "windows", Tumbling(10), SUM, lateness_ms=0)


@pytest.mark.parametrize("calls", ["1", "4"])
def test_two_windows_have_no_store_in_common(calls: str) -> None:
    """Their entries would be each other's."""
    keys = config(task__max__concurrency=calls)
    with (
        pytest.raises(TaskFailedError, match="'windows' has windows already: give each a store"),
        TestRunner(keys, task=_Two),
    ):
        pass
    with TestRunner(keys, task=_Again):
        pass


def test_sessions_need_keys_that_are_text() -> None:
    """Another serde's bytes are in another order, by which sessions are not found."""
    KEPT.update(span=Session(10))
    with (
        pytest.raises(TaskFailedError, match=r"stores\.windows\.key\.serde=json: sessions are"),
        TestRunner(config() | {"stores.windows.key.serde": "json"}, task=WindowTask),
    ):
        pass


class _Adds:
    """A callable object."""

    def __call__(self, total: int, value: int) -> int:
        """Add."""
        return total + value


class _Takes(_Adds):
    """Another one."""

    def __call__(self, total: int, value: int) -> int:
        """Take away."""
        return total - value


def _documented(total: int, value: Mapping[str, int]) -> int:
    """Say more."""
    return total + value["n"]


def _one_of(total: int, value: Any) -> int:  # noqa: ANN401 - of a function under test
    return total + (value in {"a", "b", "c", "d", "e"}) + len([v for v in value if v == ("x", 1)])


def _takes(value: object) -> object:
    return value


def _weighted(weight: int) -> Callable[..., int]:
    def add(total: int, value: int, *, more: int = weight) -> int:
        return total + value * weight + more

    return add


def _logged(function: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(function)
    def call(*arguments: int) -> int:
        return function(*arguments)

    return call


def _again(times: int) -> Callable[..., int]:
    def add(total: int, value: int, left: int = times) -> int:
        return add(total + value, value, left - 1) if left else total

    return add


def test_code_is_what_a_function_does_and_not_how_it_is_said() -> None:
    """Of functions, methods, partials, callable objects and built-in ones."""
    pairs: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (_sum, _most),
        (_Adds(), _Takes()),
        (_Adds().__call__, _Takes().__call__),
        (functools.partial(_sum, 1), functools.partial(_sum, 2)),
        (functools.partial(_sum), functools.partial(_most)),
        (max, min),
        (_weighted(1), _weighted(2)),
        (_logged(_sum), _logged(_most)),
        (_logged(_weighted(1)), _logged(_weighted(2))),
        (_again(1), _again(2)),
    ]
    for one, other in pairs:
        assert code_of(one) == code_of(one)
        assert code_of(one) != code_of(other)
    assert code_of(_sum) == code_of(_documented)
    assert code_of(_Adds()) == code_of(_Adds())
    assert code_of(_logged(_again(1))) == code_of(_logged(_again(1)))
    one, other = (functools.partial(_takes, object()) for _ in range(2))
    assert code_of(one) == code_of(other)


def test_code_is_the_same_in_each_process() -> None:
    """Where the hashes of text differ."""
    asked = (
        "from homeport.container.windows.facts import code_of\n"
        "from tests.unit.container.windows.test_facts import _one_of\n"
        "print(code_of(_one_of))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", asked],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert found == {code_of(_one_of).encode() + b"\n"}


def test_the_code_of_another_python_is_not_compared() -> None:
    """Its instructions are others."""
    KEPT.update(aggregate=Aggregate(int, _sum))
    with TestRunner(config("json"), task=WindowTask) as runner, pytest.MonkeyPatch.context() as m:
        _at_work(runner)
        m.setattr("importlib.util.MAGIC_NUMBER", b"\0\0\0\0")
        KEPT.update(aggregate=Aggregate(int, _most))
        runner.restart()


def test_kinds_of_aggregates_are_those_that_a_store_tells_apart() -> None:
    """A tuple comes back from JSON as a list, and a whole number may become another one."""
    assert kind_of((1,)) == kind_of([1]) == "a list"
    assert kind_of(1) == kind_of(1.5) == "a number"
    assert (kind_of(b"a"), kind_of("a"), kind_of({})) == ("bytes", "text", "a dict")
    assert (kind_of(None), kind_of(_Adds())) == (None, "_Adds")
