"""What user code is given."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType

import pyarrow as pa
import pytest

from homeport.config.errors import HomeportError
from homeport.container.api import BatchTask, Headers, MessageCollector, TaskContext
from homeport.container.callables import TaskFailedError
from homeport.container.host.run_over import RunOverError
from homeport.container.processing.task_instance import Context, Outputs, Requests, TaskInstance
from homeport.container.progress.topic_rules import size_of
from homeport.container.progress.transaction_plan import Send
from homeport.job_coordinator.model.ids import TaskName


def _outputs() -> Outputs:
    return Outputs({"kafka", "other"}, {"kafka"}, "kafka")


def test_streams_are_named_with_or_without_their_system() -> None:
    """Dots belong to the topic unless a declared system stands before the first one."""
    outputs = _outputs()
    for stream in ("kafka.out", "out", "my.topic"):
        outputs.send(stream, b"v", b"k")
    assert [send.topic for send in outputs.sends] == ["out", "out", "my.topic"]
    assert outputs.size_bytes == 6
    outputs.clear()
    assert list(outputs.sends) == []


def test_output_taken_for_sending_still_counts_for_the_transaction() -> None:
    """What has left at once is bounded by its memory all the same, until it is known to be over."""
    outputs = _outputs()
    outputs.send("out", b"v", b"k")
    taken = outputs.take()
    assert (len(list(taken)), list(outputs.sends), outputs.size_bytes) == (1, [], 2)
    outputs.clear()
    assert outputs.size_bytes == 0


def test_records_of_one_topic_keep_their_order_whatever_they_have_and_name() -> None:
    """Plain ones, with headers, by either name of the stream; and what is taken does not grow."""
    outputs = _outputs()
    outputs.send("out", b"0")
    outputs.send("kafka.out", b"1")
    outputs.send("b", b"x")
    outputs.send("out", b"2", headers={"h": b""})
    outputs.send("kafka.out", b"3", b"k")
    outputs.send("out", b"4")
    taken = outputs.take()
    outputs.send("out", b"5")
    assert [s.value for s in taken if s.topic == "out"] == [b"0", b"1", b"2", b"3", b"4"]
    assert list(outputs.sends) == [Send("out", None, b"5", system="kafka")]


def test_headers_of_one_name_are_passed_on_whole_and_in_their_order() -> None:
    """Those of a message, pairs, and a mapping; what a task has changed is what leaves."""
    pairs = [("a", b"1"), ("b", None), ("a", b"2")]
    outputs = _outputs()
    headers = Headers.of(pairs)
    assert headers == {"a": b"2", "b": None}
    changed = Headers.of(pairs)
    changed["c"] = b"3"
    for given in (headers, pairs, Headers.of(pairs[:2]), changed, MappingProxyType({"a": b"1"})):
        outputs.send("out", None, headers=given)
    assert [send.headers for send in outputs.sends] == [
        pairs,
        pairs,
        pairs[:2],
        [("a", b"2"), ("b", None), ("c", b"3")],
        pairs[:1],
    ]
    assert size_of(next(iter(outputs.sends))) == len("aba") + 2


def test_an_output_that_cannot_be_sent_is_refused_at_once() -> None:
    """Other brokers, no system at all, texts instead of bytes."""
    with pytest.raises(ValueError, match="one transaction cannot reach both"):
        _outputs().send("other.out", b"v")
    with pytest.raises(ValueError, match=r"job\.default\.system is not set"):
        Outputs({"kafka"}, {"kafka"}, None).send("out", b"v")
    with pytest.raises(TypeError, match="must have bytes or None"):
        _outputs().send("out", "v")
    key, value = (f"systems.kafka.streams.out.samza.{part}.serde" for part in ("key", "msg"))
    for pair, needed in (
        (("v", b"k"), f"not str: set {value}, "),
        (("v", None), f"not str: set {value}, "),
        ((b"v", 1), f"not int: set {key}, "),
        (({}, "k"), f"not str: set {key} and {value}, such as string or json"),
    ):
        with pytest.raises(TypeError, match=re.escape(needed)):
            _outputs().send("out", *pair)
    for odd in (None, b"out", ["out"], 1):
        with pytest.raises(TypeError, match="give the stream's name as a str"):
            _outputs().send(odd, b"v")  # type: ignore[arg-type]  # what a task may do


def test_an_unknown_store_is_answered_with_those_there_are() -> None:
    """A typing error is found at init."""
    context = Context(TaskName("Partition 0"), {"a": "b"}, {})
    assert context.task_name == "Partition 0"
    assert context.config == {"a": "b"}
    with pytest.raises(KeyError, match="no store 'x' is configured; known: none"):
        context.store("x")


class Failing(BatchTask):
    """Raises at the configured place."""

    where = ""
    error: type[BaseException] = RuntimeError

    def init(self, context: TaskContext) -> None:
        """Maybe raises."""
        self._at("init", context.task_name)

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Maybe raises."""
        assert isinstance(collector, Context)
        self._at("process_batch", str(table.num_rows))

    def end_transaction(self, collector: MessageCollector) -> None:
        """Maybe raises."""
        assert isinstance(collector, Context)
        self._at("end_transaction", "")

    def close(self) -> None:
        """Maybe raises."""
        self._at("close", "")

    def _at(self, step: str, text: str) -> None:
        if step == self.where:
            raise self.error(f"no\nluck {text}".strip())


@pytest.mark.parametrize("where", ["init", "process_batch", "end_transaction", "close"])
@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_exception_names_task_and_step(
    where: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, with the user's exception as the cause; one that would end a process too."""
    monkeypatch.setattr(Failing, "where", where)
    monkeypatch.setattr(Failing, "error", error)
    context = Context(TaskName("T"), {}, {})
    with pytest.raises(TaskFailedError) as failed:
        _run_through(context)
    assert str(failed.value).startswith(f"task 'T' failed in {where}: {error.__name__}: no luck")
    assert isinstance(failed.value.__cause__, error)


def _run_through(context: Context) -> None:
    instance = TaskInstance(Failing, context, _outputs(), Requests())
    instance.process_batch(pa.table({"a": [1]}))
    instance.end_transaction()
    instance.close()


def test_nothing_of_an_ended_run_answers() -> None:
    """Code may keep it in a module, and the process may run another incarnation."""
    outputs, requests = _outputs(), Requests()
    context = Context(TaskName("T"), {"k": "v"}, {})
    context.open(outputs, requests)
    send, schedule = context.send, context.scheduler.schedule
    context.close()
    context.end()
    outputs.end()
    calls: list[Callable[[], object]] = [
        lambda: send("kafka.out", b"x"),
        lambda: outputs.send("kafka.out", b"x"),
        lambda: schedule("t", after_ms=1),
        lambda: context.scheduler.cancel("t"),
        lambda: context.scheduler.scheduled("t"),
        lambda: context.store("s"),
        lambda: context.config,
        lambda: context.repartition("r"),
    ]
    for call in calls:
        with pytest.raises(RunOverError, match="that run has ended"):
            call()
    for refused in (context.commit, context.shutdown, lambda: context.send("kafka.out", b"x")):
        with pytest.raises(HomeportError):
            refused()
    assert requests == Requests()
