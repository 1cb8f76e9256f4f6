"""Handles of a job in Python that are used in a wrong way: what the task fails with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from class_questions import code_of

from homeport import Job
from homeport.container.api import IncomingMessage
from homeport.container.callables import TaskFailedError
from homeport.testing import TestRunner


@pytest.mark.parametrize(
    ("use", "line"),
    [
        (
            lambda _, out, *__: out.send({"n": 1}),
            r"TypeError: kafka\.out\.send\(\) missing 1 required positional argument: 'value'",
        ),
        (
            lambda key, _, sums, __: sums.add(key, 1),
            r"sums\.add takes the message first, not str: .* write sums\.add\(message, value\)",
        ),
        (
            lambda key, _, sums, __: sums.add(key, 1, key=key, at_ms=3),
            r"TypeError: sums\.add takes the message first, not str: let the function take",
        ),
        (
            lambda key, _, sums, __: sums.add(None, 1, key=key, at_ms=3),
            r"TypeError: sums\.add takes the message first, not NoneType: let the function take",
        ),
        (
            lambda key, _, __, planes: planes.__setitem__(key, "x"),
            r"planes\['k'\] is of reference data, which its topic alone fills: send to the topic",
        ),
        (lambda key, _, __, planes: planes.__delitem__(key), r"planes\['k'\] is of reference data"),
    ],
)
def test_a_wrong_use_of_a_handle_is_named(use: Callable[..., object], line: str) -> None:
    """As the user has written it, not by what is behind it."""
    job = Job("misused")
    source = job.input("in", key=str, value=dict)
    target = job.output("out", key=str, value=dict)
    sums = job.window("sums", value=int, size=5)
    planes = job.reference("planes", key=str, value=str)

    @job.each(source)
    def wrong(key: str, _value: dict[str, object]) -> None:
        use(key, target, sums, planes)

    job.closed(sums)(lambda _key, _value: None)
    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        with pytest.raises(TaskFailedError, match=line):
            runner.run()


def test_a_window_without_a_function_is_warned_of(
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not refused: code may read it by ``at``, which is not known before it runs."""
    job = Job("unread")
    source = job.input("in", key=str, value=dict)
    read = job.window("read", value=int, size=5)
    job.window("lost", value=int, size=5)
    job.each(source)(repr)
    job.closed(read)(lambda _key, _value: None)
    with TestRunner(job) as runner:
        assert len(runner.warnings) == 1
    (record,) = caplog.records
    assert (record.getMessage(),) == runner.warnings
    assert record.getMessage() == (
        "job.window = 'lost': no function gets its results, which are lost unless at(...) reads "
        "them; write one under @job.closed"
    )
    monkeypatch.setitem(sys.modules, "unread", SimpleNamespace(job=job))
    assert code_of(task_class="unread:job", streams=("kafka.in",)) == 0
    assert f"note: {record.getMessage()}" in capsys.readouterr().out.splitlines()


class _Proxy:
    """Looks like a message, and is none."""

    def __init__(self, message: IncomingMessage) -> None:
        self._message = message

    def __getattr__(self, name: str) -> object:
        return getattr(self._message, name)


@pytest.mark.parametrize("made", [IncomingMessage._make, _Proxy])
def test_an_error_of_adding_is_the_users_own(made: Callable[[IncomingMessage], Any]) -> None:
    """An AttributeError of a window's function stays as it is, whatever stands for the message."""
    job = Job("adds")
    source = job.input("in", key=str, value=dict)

    def add(_total: int, more: Any) -> int:  # noqa: ANN401 - has no such attribute
        return int(more.absent)

    sums = job.window("sums", value=int, size=5, add=add, meaning="absent", init=int)
    job.closed(sums)(lambda _key, _value: None)

    @job.each(source)
    def wrong(_key: str, _value: dict[str, object], message: IncomingMessage) -> None:
        sums.add(made(message), 1)

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        with pytest.raises(TaskFailedError, match="'int' object has no attribute 'absent'"):
            runner.run()


def test_what_stands_for_a_message_is_added() -> None:
    """As it has the parts that count."""
    job = Job("stands")
    source = job.input("in", key=str, value=int)
    sums = job.window("sums", value=int, size=5)
    job.closed(sums)(repr)

    @job.each(source)
    def add(_key: str, value: int, message: IncomingMessage) -> None:
        stand: Any = _Proxy(message)
        sums.add(stand, value)

    with TestRunner(job) as runner:
        runner.send("in", key="k", value=3, timestamp=1)
        runner.run()
        (kept,) = [row for row in runner.store("sums").all() if row[1] == 3]
    assert kept
