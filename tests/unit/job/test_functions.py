"""The functions of a job in Python, run by TestRunner as its container runs them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from waiting import until

from homeport import Job
from homeport.config.errors import ConfigError, HomeportError
from homeport.container.api import IncomingMessage, StreamTask, TaskContext, Timer
from homeport.container.callables import TaskFailedError
from homeport.job.functions import Functions, task_class_of
from homeport.job.handles import Calls, Store
from homeport.testing import Record, TestRunner
from tests.unit.job import test_declaration


def _job(name: str, **keys: object) -> tuple[Job, Any, Any, Any]:
    made = Job(name, keys={key.replace("_", "."): value for key, value in keys.items()})
    source = made.input("in", key=str, value=dict)
    target = made.output("out", key=str, value=dict)
    return made, source, target, made.store("kept", key=str, value=int)


def test_a_crash_before_each_step_of_a_commit_counts_once() -> None:
    """The store of the declared job is exact, as one of a properties file is."""
    with TestRunner(test_declaration.job) as runner:
        for name, amount in (("ann", 5), ("bob", 2), ("ann", 7)):
            runner.send("orders", key=name, value={"amount": amount})
        runner.run()
        assert runner.output("totals") == [
            Record("ann", {"total": 5.0}),
            Record("bob", {"total": 2.0}),
            Record("ann", {"total": 12.0}),
        ]
        for number, step in enumerate(runner.commit_steps, start=1):
            runner.send("orders", key="eve", value={"amount": 1})
            runner.crash_before(step)
            runner.restart()
            runner.run()
            assert runner.store("total").get("eve") == number


def test_functions_get_what_they_take() -> None:
    """Key and value, all three, or the message alone; each input its own."""
    job = Job("forms")
    seen: list[object] = []
    pairs, triples, messages = (job.input(n, key=str, value=int) for n in ("a", "b", "c"))

    @job.each(pairs)
    def pair(key: str, value: int) -> None:
        seen.append((key, value))

    @job.each(triples)
    def triple(key: str, value: int, message: IncomingMessage) -> None:
        seen.append((key, value, message.stream))

    @job.each(messages)
    def whole(message: IncomingMessage) -> None:
        seen.append((message.key, message.headers))

    with TestRunner(job) as runner:
        for stream in ("a", "b", "c"):
            runner.send(stream, key="k", value=1, headers={"h": b"x"})
            runner.run()
    assert seen == [("k", 1), ("k", 1, "b"), ("k", {"h": b"x"})]


def test_each_task_has_its_part_of_a_store() -> None:
    """One handle stands for the part of the task that is called."""
    job, source, _, kept = _job("parts")

    @job.each(source)
    def count(key: str, _value: dict[str, object]) -> None:
        kept[key] = kept.get(key, 0) + 1

    with TestRunner(job, partitions=2) as runner:
        for partition in (0, 1, 1):
            runner.send("in", key="k", value={}, partition=partition)
        runner.run()
        assert [runner.store("kept", partition=n).get("k") for n in (0, 1)] == [1, 2]


def test_a_store_is_a_mapping_of_its_keys() -> None:
    """Reads and writes of all forms reach the store."""
    job, source, _, kept = _job("mapping")
    seen: list[object] = []

    @job.each(source)
    def use(_key: str, _value: dict[str, object]) -> None:
        kept.put_all({"a": 1, "b": 2, "c": 3})
        del kept["c"]
        with pytest.raises(KeyError, match="c"):
            kept["c"]
        seen.extend(["a" in kept, "c" in kept, kept["a"], kept.get("c"), kept.get("c", 9)])
        seen.append(kept.get_all(["a", "b", "c"]))
        seen.extend(list(pairs) for pairs in (kept.all(), kept.range("b", "z"), kept.prefix("a")))
        kept.put_arrow(pa.array(["d"]), pa.array([4]))
        seen.append(kept.get_arrow(pa.array(["d", "e"])).to_pylist())
        kept.delete_all(["a", "d"])

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        runner.run()
        assert dict(runner.store("kept").all()) == {"b": 2}
    assert seen == [
        *[True, False, 1, None, 9, {"a": 1, "b": 2}],
        *[[("a", 1), ("b", 2)], [("b", 2)], [("a", 1)], [4, None]],
    ]


def test_batches_are_arrow_tables() -> None:
    """Columns of BATCH_SCHEMA; stores and outputs are there."""
    job, source, target, kept = _job("batches")

    @job.batch(source)
    def count(table: pa.Table) -> None:
        for key in table["key"].to_pylist():
            name = key.decode()
            kept[name] = kept.get(name, 0) + 1
            target.send(name, {"n": kept[name]})

    with TestRunner(job) as runner:
        for key in ("a", "b", "a"):
            runner.send("in", key=key, value={})
        runner.run()
        assert [record.value["n"] for record in runner.output("out")] == [1, 1, 2]


def test_coroutines_keep_their_task_over_a_wait() -> None:
    """Handles stand for the task of the call, also where calls run side by side."""
    job, source, target, kept = _job("waits", task_max_concurrency=4)

    @job.each(source)
    async def slow(key: str, value: dict[str, int]) -> None:
        await asyncio.sleep(0)
        kept[key] = value["n"]
        target.send(key, value)

    with TestRunner(job, partitions=2) as runner:
        for n in range(8):
            runner.send("in", key=str(n), value={"n": n}, partition=n % 2)
        runner.run()
        assert [runner.store("kept", partition=n % 2).get(str(n)) for n in range(8)] == [*range(8)]
        assert sorted(record.value["n"] for record in runner.output("out")) == [*range(8)]


def test_threads_begin_the_first_calls_of_a_task_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of them binds is not bound in part for the other."""
    job, source, target, kept = _job("threads", task_max_concurrency=2)
    runs, waits, bound = threading.Event(), threading.Lock(), Store.methods

    def methods(
        store: Store[Any, Any], context: TaskContext
    ) -> Mapping[str, Callable[..., object]]:
        if threading.current_thread() is not threading.main_thread() and waits.acquire(
            blocking=False
        ):
            assert runs.wait(60)  # the other call comes first
        return bound(store, context)

    monkeypatch.setattr(Store, "methods", methods)

    @job.on_start
    def begin() -> None:
        kept["starts"] = 1

    @job.each(source)
    def add(key: str, value: dict[str, int]) -> None:
        runs.set()
        kept[key] = value["n"]
        target.send(key, value)

    with TestRunner(job) as runner:
        for n in range(2):
            runner.send("in", key=str(n), value={"n": n})
        assert runner.run() == 2
        assert runner.store("kept").get_all(["starts", "0", "1"]) == {"starts": 1, "0": 0, "1": 1}


def test_timers_intervals_and_the_start() -> None:
    """All of them may use stores and outputs."""
    job, source, target, kept = _job("timers")

    @job.on_start
    def begin() -> None:
        kept["starts"] = kept.get("starts", 0) + 1

    @job.each(source)
    def ask(key: str, _value: dict[str, object]) -> None:
        job.scheduler.schedule("due", key, after_ms=50)
        assert job.context.task_name == "Partition 0"

    @job.on_timer
    def due(timer: Timer) -> None:
        target.send(timer.key, {"due": timer.name})

    @job.every(ms=100)
    def tick() -> None:
        target.send(None, {"tick": kept["starts"]})
        job.commit()

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        runner.run()
        runner.advance(100)
        assert [r.value for r in runner.output("out")] == [{"due": "due"}, {"tick": 1}]


def test_a_job_may_end_itself() -> None:
    """Every task has voted: the container has finished."""
    job, source, *_ = _job("ends")

    @job.each(source)
    def last(_key: str, _value: dict[str, object]) -> None:
        job.shutdown()

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        runner.run()
        assert not runner.is_running


def test_handles_outside_of_a_call_are_refused() -> None:
    """At module level, in another thread, and of another job: one line that names the handle."""
    job, source, target, kept = _job("inside")
    _, _, _, others = _job("another")
    lines: list[str] = []

    def use(name: str, handle: Any) -> None:  # noqa: ANN401 - of any types
        try:
            handle.get(name) if handle is not target else handle.send(name, {})
        except HomeportError as error:
            lines.append(str(error))

    @job.each(source)
    def call(key: str, _value: dict[str, object]) -> None:
        thread = threading.Thread(target=use, args=(key, kept))
        thread.start()
        thread.join()
        use(key, others)

    use("k", kept)
    use("k", target)
    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        runner.run()
    rest = "is used outside of a call: use it in a function of that job, in the thread or "
    rest += "coroutine in which the job calls it"
    assert lines == [
        f"the store kept of the job 'inside' {rest}",
        f"the output kafka.out of the job 'inside' {rest}",
        f"the store kept of the job 'inside' {rest}",
        f"the store kept of the job 'another' {rest}",
    ]
    with pytest.raises(HomeportError, match="commit of the job 'inside' is used outside"):
        job.commit()


def test_an_error_of_the_function_is_the_tasks_own() -> None:
    """It fails the container, or is ignored where the key says so; its frames are not ours."""
    job, source, _, kept = _job("fails", task_ignored_exceptions="ValueError")

    @job.each(source)
    def fail(key: str, _value: dict[str, object]) -> None:
        kept[key] = 1
        raise {"v": ValueError("not mine"), "o": OSError("gone")}[key]

    with TestRunner(job) as runner:
        runner.send("in", key="v", value={})
        runner.run()
        assert runner.store("kept").get("v") == 1
        runner.send("in", key="o", value={})
        with pytest.raises(TaskFailedError, match="gone"):
            runner.run()


def test_a_timer_without_a_function_names_the_decorator() -> None:
    """The class whose method is missing is none of the user's."""
    job, source, *_ = _job("untimed")

    @job.each(source)
    def wait(_key: str, _value: dict[str, object]) -> None:
        job.scheduler.schedule("later", after_ms=1)

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        line = r"HomeportError: the timer 'later' is due, .*; write one under @job\.on_timer"
        with pytest.raises(TaskFailedError, match=line):
            runner.advance(10)


def test_a_generator_is_no_function_for_records() -> None:
    """Its body would never run: at its line, or, where a decorator hides it, in the container."""
    job, source, *_ = _job("generates")

    def yields(key: str, _value: dict[str, object]) -> Any:  # noqa: ANN401 - a generator by mistake
        yield key

    async def yields_later(_message: IncomingMessage) -> Any:  # noqa: ANN401 - as above
        yield 1

    class Later:
        async def __call__(self, key: str, value: dict[str, object]) -> None: ...

    def named(key: str, value: dict[str, object], *, more: int) -> None: ...

    mistakes: tuple[tuple[Any, str], ...] = (
        (yields, "job.each = 'yields': it is a generator: .*; remove its yield: send by an output"),
        (yields_later, "'yields_later': it is an async generator: .*: send by an output, as in"),
        (Later(), "it is a coroutine, which nothing would await; use def"),
        (named, "it is not to be called with .key, value.: missing a required .*'more'"),
    )
    for wrong, expected in mistakes:
        with pytest.raises(ConfigError, match=expected):
            job.each(source)(wrong)

    @job.each(source)
    def hides(key: str, value: dict[str, object]) -> object:
        return yields(key, value)

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        with pytest.raises(TaskFailedError, match="generator"):
            runner.run()


def test_what_a_coroutine_has_begun_and_not_awaited_has_no_call() -> None:
    """Nor has a thread of it: the micro-batch may be over, and committed."""
    job, source, _, kept = _job("begins")
    begun: list[asyncio.Task[None]] = []
    lines: list[str] = []

    async def later(key: str) -> None:
        await asyncio.sleep(0)
        try:
            kept[key] = 1
        except HomeportError as error:
            lines.append(str(error))

    @job.each(source)
    async def call(key: str, _value: dict[str, object]) -> None:
        await asyncio.gather(later(key))
        assert kept[key] == 1
        with pytest.raises(HomeportError, match="used outside of a call"):
            await asyncio.to_thread(kept.get, key)
        begun.append(asyncio.create_task(later("late")))

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        runner.run()
        until(begun[0].done)
        assert runner.store("kept").get("late") is None
    assert ["store kept of the job 'begins' is used outside" in line for line in lines] == [True]


def test_a_function_at_the_start_that_returns_a_generator_has_not_run() -> None:
    """A decorator may have hidden what it is."""
    job, source, *_ = _job("hidden")
    job.each(source)(repr)
    job.on_start(lambda: (n for n in "never"))
    with pytest.raises(TaskFailedError, match=r"failed in init: .* never run"):
        TestRunner(job).__enter__()


def test_functions_of_batches_commit_and_vote() -> None:
    """As those of records do."""
    job, source, *_ = _job("batches")

    @job.batch(source)
    def last(_table: object) -> None:
        job.commit()
        job.shutdown()

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        runner.run()
        assert not runner.is_running


@pytest.mark.parametrize("asked", [Job.commit, Job.shutdown])
def test_the_start_cannot_ask(asked: Callable[[Job], None]) -> None:
    """A task has no transaction yet."""
    job, source, *_ = _job("starts")
    job.each(source)(repr)
    job.on_start(lambda: asked(job))
    rule = "a task's init and close cannot; do it in its other methods"
    with pytest.raises(TaskFailedError, match=rule):
        TestRunner(job).__enter__()


def test_records_that_no_function_takes_fail_the_task() -> None:
    """They are no other input's: keys of a deployment may add inputs."""
    job, source, *_ = _job("strange")
    job.each(source)(repr)
    added = {"task.broadcast.inputs": "kafka.more#0"}
    with pytest.raises(ConfigError, match=r"kafka\.more': the job has no function for its"):
        TestRunner(job, overrides=added)


def test_keys_of_a_deployment_may_take_the_records_of_an_input() -> None:
    """An input that fills a store, by these keys alone, needs no function."""
    job, source, *_ = _job("filled")
    job.each(source)(repr)
    added = {
        "task.inputs": f"{source}, kafka.planes",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "stores.planes.adstore.input": "kafka.planes",
    }
    with TestRunner(job, overrides=added) as runner:
        runner.send_bytes("planes", key=b"N1", value=b"737")
        runner.run()
        assert runner.store("planes").get("N1") == "737"


def test_the_one_function_takes_the_rows_of_a_pipeline() -> None:
    """Of all inputs; a row need not have a stream's name."""
    seen: list[str] = []
    calls = Calls("rows", ContextVar("call", default=None), [])
    functions = Functions({"kafka.a": lambda message: seen.append(message.stream)})
    job = Job("rows")
    streams = [job.input("b").stream]
    job.each(job.input("a"))(repr)
    assert issubclass(job.task_class(streams, has_pipeline=True), StreamTask)
    task: Any = task_class_of(functions, calls, has_pipeline=True)()
    task.init(SimpleNamespace(send=print))
    for stream in ("a", "b", ""):
        task.process(IncomingMessage("kafka", stream, 0, 0, "k", {}, 0, {}), None)
    assert seen == ["a", "b", ""]


def _failing(keys: dict[str, object], failing: object) -> tuple[TestRunner, list[int]]:
    job = Job("fails", keys=keys)
    source = job.input("in", key=str, value=int)
    seen: list[int] = []

    @job.each(source)
    def process(_key: str, value: int) -> object:
        seen.append(value)
        if value == 2:
            if failing is not None:
                return failing
            raise LookupError(value)
        return None

    runner = TestRunner(job)
    for value in range(4):
        runner.send("in", key="k", value=value)
    return runner, seen


@pytest.mark.parametrize("failing", [None, (number for number in range(1))])
def test_a_failure_names_the_record(failing: object) -> None:
    """The task stops at the record: also at what a function returns and does not run."""
    runner, seen = _failing({}, failing)
    with runner, pytest.raises(TaskFailedError, match="process of in partition 0 offset 2: "):
        runner.run()
    assert seen == [0, 1, 2]


def test_an_ignored_exception_skips_its_record_alone() -> None:
    """Records after it, of the same batch, have their calls."""
    runner, seen = _failing({"task.ignored.exceptions": "LookupError"}, None)
    with runner:
        runner.run()
    assert seen == [0, 1, 2, 3]


def test_a_handle_is_bound_in_its_call_alone() -> None:
    """After the batch, and for another job's function, its methods refuse."""
    job, source, target, kept = _job("bound")
    other, other_source, *_ = _job("other")
    found: list[object] = []

    @job.each(source)
    def count(key: str, _value: dict[str, object]) -> None:
        kept.put(key, 1)
        found.append(kept.get(key))
        kept.delete(key)
        target.send(key, {}, headers={"h": b"x"})

    @other.each(other_source)
    def foreign(key: str, _value: dict[str, object]) -> None:
        kept.put(key, 1)

    for made, failure in (
        (job, None),
        (other, "the store kept of the job 'bound' is used outside"),
    ):
        with TestRunner(made) as runner:
            runner.send("in", key="k", value={})
            if failure is None:
                runner.run()
                assert runner.output("out") == [Record("k", {}, headers={"h": b"x"})]
            else:
                with pytest.raises(TaskFailedError, match=failure):
                    runner.run()
    for use in (kept.delete, kept.get, kept.__getitem__):
        with pytest.raises(HomeportError, match="outside of a call"):
            use("k")
    assert found == [1]


def test_a_record_that_cannot_be_read_is_dropped_between_others() -> None:
    """Its part of the batch is read record by record; the function gets the others, in order."""
    job = Job("bad", keys={"task.drop.deserialization.errors": "true"})
    seen: list[object] = []

    @job.each(job.input("in", key=str, value=int))
    def process(key: str, value: int) -> None:
        seen.append((key, value))

    with TestRunner(job) as runner:
        runner.send("in", key="k", value=1)
        runner.send_bytes("in", key=b"k", value=b"short")
        runner.send("in", key="k", value=3)
        runner.run()
    assert seen == [("k", 1), ("k", 3)]


@pytest.mark.parametrize("is_started", [False, True])
def test_a_runner_within_a_function_of_its_job_is_refused(*, is_started: bool) -> None:
    """One line; the handles of the outer call go on."""
    job, source, target, kept = _job("nested")
    lines: list[str] = []

    @job.each(source)
    def outer(key: str, value: dict[str, object]) -> None:
        with pytest.raises(HomeportError) as refused:
            inner.run() if is_started else inner.start()
        lines.append(str(refused.value))
        kept[key] = 1
        target.send(key, value)

    inner = TestRunner(job)
    if is_started:
        inner.start().send("in", key="k", value={})
    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        runner.run()
        assert runner.store("kept").get("k") == 1
        assert runner.output("out") == [Record("k", {})]
    (line,) = lines
    assert line.removeprefix("task 'Partition 0' failed in init: HomeportError: ") == (
        "the job 'nested' is run in a call of a function of its own: run it in a TestRunner "
        "outside of its functions"
    )
    inner.close()


@pytest.mark.parametrize("calls", [1, 2])
def test_a_runner_of_another_job_may_be_within_a_function(calls: int) -> None:
    """Each job has its own handles."""
    job, source, target, kept = _job("outer", task_max_concurrency=calls)
    other, other_source, other_target, _ = _job("inner")
    other.each(other_source)(other_target.send)

    @job.each(source)
    def outer(key: str, value: dict[str, object]) -> None:
        with TestRunner(other) as inner:
            inner.send("in", key=key, value=value)
            inner.run()
            kept[key] = len(inner.output("out"))
        target.send(key, value)

    with TestRunner(job) as runner:
        runner.send("in", key="k", value={})
        runner.run()
        assert runner.store("kept").get("k") == 1
