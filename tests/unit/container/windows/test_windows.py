"""Windows over a store: which there are, when they close, what is late, and crashes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.container.api import StreamTask
from homeport.container.callables import TaskFailedError
from homeport.container.windows import Aggregate, Hopping, Session, Tumbling
from homeport.testing import TestRunner
from tests.unit.container.windows.window_jobs import KEPT, SESSIONS, WindowBatch, WindowTask, config


def _sent(runner: TestRunner, *records: tuple[str, int, int]) -> None:
    for key, at, n in records:
        runner.send("kafka.in", key=key, value={"n": n}, timestamp=at)
    runner.run()


def _out(runner: TestRunner) -> list[list[Any]]:
    """[key, start, end, value, is final] of each result."""
    return [[r.key.decode(), *json.loads(r.value)] for r in runner.output("kafka.out")]


def _open(runner: TestRunner) -> list[str]:
    return [entry for entry, _ in runner.store("windows").all() if entry[0] == "w"]


def test_a_tumbling_window_closes_with_the_record_that_brings_its_end() -> None:
    """By key, in the order of ends; then nothing of it is left."""
    with TestRunner(config(), task=WindowTask) as runner:
        _sent(runner, ("b", 3, 1), ("a", 9, 2), ("a", 0, 4), ("a", 12, 8))
        assert _out(runner) == [["a", 0, 10, 6, True], ["b", 0, 10, 1, True]]
        _sent(runner, ("b", 40, 1))
        assert _out(runner)[2:] == [["a", 10, 20, 8, True]]
        assert len(_open(runner)) == 1


@pytest.mark.parametrize(
    ("kept", "records", "results", "left"),
    [
        # A record that is late for some windows counts in the others.
        (
            {"span": Hopping(20, 10)},
            [("a", 15, 1), ("a", 20, 2), ("a", 19, 4), ("a", 60, 0)],
            [["a", 0, 20, 1, True], ["a", 10, 30, 7, True], ["a", 20, 40, 2, True]],
            2,
        ),
        # Updates come at once, and not again at the close.
        (
            {"emit": "update"},
            [("a", 1, 1), ("a", 2, 2), ("a", 30, 4)],
            [["a", 0, 10, 1, False], ["a", 0, 10, 3, False], ["a", 30, 40, 4, False]],
            1,
        ),
        # A record between two sessions makes one of them; each key has its own.
        (
            {**SESSIONS, "lateness_ms": 30},
            [
                *[("a", 10, 1), ("a", 28, 2), ("b", 15, 16), ("a/b", 12, 32)],
                *[("a", 19, 4), ("a", 5, 8), ("a", 69, 64)],
            ],
            [["a/b", 12, 22, 32, True], ["b", 15, 25, 16, True], ["a", 5, 38, 15, True]],
            1,
        ),
        (
            SESSIONS,
            [("a", 0, 1), ("a", 10, 2), ("a", 9, 4), ("a", 20, 0)],
            [["a", 0, 10, 1, True], ["a", 9, 20, 6, True]],
            1,
        ),
        # One that has another's start replaces it; a later one is gone, which None says.
        (
            {**SESSIONS, "emit": "update", "lateness_ms": 100},
            [("a", 0, 1), ("a", 15, 2), ("a", 8, 4)],
            [
                *[["a", 0, 10, 1, False], ["a", 15, 25, 2, False]],
                *[["a", 15, 25, None, False], ["a", 0, 25, 7, False]],
            ],
            1,
        ),
    ],
    ids=["hopping", "updates", "sessions that merge", "sessions", "updates of sessions"],
)
def test_records_come_to_the_windows_of_their_span(
    kept: dict[str, Any], records: list[tuple[str, int, int]], results: list[list[Any]], left: int
) -> None:
    """In the order of their ends; closed ones are gone."""
    KEPT.update(kept)
    with TestRunner(config(), task=WindowTask) as runner:
        _sent(runner, *records)
        assert _out(runner) == results
        assert len(_open(runner)) == left


def test_late_records_are_dropped_and_counted_or_handed_on() -> None:
    """Within the lateness they count in their window."""
    KEPT.update(lateness_ms=5, late=True)
    with TestRunner(config(), task=WindowTask) as runner:
        _sent(runner, ("a", 14, 1), ("a", 3, 2), ("a", 15, 4), ("a", 9, 8))
        assert _out(runner) == [["a", 0, 10, 2, True]]
        late = [(r.key, json.loads(r.value)) for r in runner.output("kafka.late")]
        assert late == [(b"a", [9, {"n": 8}])]
    KEPT.clear()
    with TestRunner(config(), task=WindowTask) as runner:
        task = _task(runner)
        _sent(runner, ("a", 14, 1), ("a", 3, 2), ("a", 2, 2))
        assert (_out(runner), task.windows.late) == ([], 2)
        assert runner.output("kafka.late") == []


def _task(runner: TestRunner) -> Any:  # noqa: ANN401 - of the test's own class
    (instance,) = runner._running()._parts.tasks.values()
    task: StreamTask = instance._task  # type: ignore[attr-defined]  # of that class
    return task


def test_the_lateness_is_the_job_s_unless_it_is_given() -> None:
    """One key for timers and windows."""
    with TestRunner(config(task__watermark__lateness__ms="7"), task=WindowTask) as runner:
        _sent(runner, ("a", 1, 1), ("a", 16, 2))
        assert _out(runner) == []
        _sent(runner, ("a", 17, 2))
        assert _out(runner) == [["a", 0, 10, 1, True]]


def test_closed_windows_can_be_read_for_the_retention() -> None:
    """Open ones too; they are not closed a second time, and go in the end."""
    for more in ({}, SESSIONS):
        KEPT.clear()
        KEPT.update(more, retention_ms=100)
        with TestRunner(config(), task=WindowTask) as runner:
            _sent(runner, ("a", 1, 1), ("a", 55, 2))
            task = _task(runner)
            (closed,) = task.windows.at("a", 5)
            assert (closed.value, closed.is_final) == (1, True)
            (still,) = task.windows.at("a", 58)
            assert (still.value, still.is_final) == (2, False)
            assert task.windows.at("b", 5) == task.windows.at("a", 30) == []
            runner.restart()
            _sent(runner, ("a", 3, 9), ("a", 109, 4))
            assert [value for *_, value, _ in _out(runner)] == [1, 2]
            assert _task(runner).windows.at("a", 5)
            _sent(runner, ("a", 120, 4))
            assert _task(runner).windows.at("a", 5) == []
            assert len(_open(runner)) == 3


def test_the_slowest_partition_holds_windows_open_until_it_is_idle() -> None:
    """What each one has brought is known after a restart."""
    keys = config(task__watermark__idle__ms="5000")
    keys |= {"task.inputs": "kafka.in,kafka.too"}
    keys |= {k.replace(".in.", ".too."): v for k, v in keys.items() if ".in." in k}
    with TestRunner(keys, task=WindowTask) as runner:
        _sent(runner, ("a", 1, 1), ("a", 100, 2))
        assert _out(runner) == []
        runner.send("kafka.too", key="b", value={"n": 4}, timestamp=9)
        runner.run()
        assert _out(runner) == []
        runner.send("kafka.too", key="b", value={"n": 8}, timestamp=12)
        runner.run()
        expected = [["a", 0, 10, 1, True], ["b", 0, 10, 4, True]]
        assert _out(runner) == expected
        runner.restart()
        runner.send("kafka.too", key="b", value={"n": 16}, timestamp=21)
        runner.run()
        assert _out(runner) == [*expected, ["b", 10, 20, 8, True]]
        runner.advance(4000)
        runner.send("kafka.in", key="a", value={"idle": 2000})
        runner.run()
        runner.send("kafka.in", key="a", value={"n": 1}, timestamp=200)
        runner.run()
        assert len(_out(runner)) == 3
        runner.advance(4000)
        assert [r[:3] for r in _out(runner)[3:]] == [["b", 20, 30], ["a", 100, 110]]


@pytest.mark.parametrize("serde", ["long", "json", "double", "string", "bytes"])
def test_aggregates_are_of_any_built_in_serde(serde: str) -> None:
    """Times are kept beside them, in the same store."""
    kind: Any = {"double": float, "string": str, "bytes": lambda n=0: b"%d" % n}.get(serde, int)
    KEPT.update(
        aggregate=Aggregate(
            init=lambda: kind() if serde != "string" else "0",
            add=lambda total, value: kind(int(total) + value["n"]),
        )
    )
    with TestRunner(config(serde), task=WindowTask) as runner:
        windows = runner.store("windows")
        _sent(runner, ("a", 3, 3), ("a", 4, 4))
        assert int(dict(windows.all())["w/000000000000010/000000000000000/a"]) == 7
        runner.restart()
        assert _task(runner).windows.watermark_ms == 4


@pytest.mark.parametrize("same_host", [True, False])
@pytest.mark.parametrize("span", [Tumbling(10), Session(5)])
def test_a_crash_before_any_step_closes_each_window_once(
    span: Tumbling | Session, *, same_host: bool
) -> None:
    """With every record in it, and late ones in none."""
    KEPT.update(span=span)
    with TestRunner(config(), task=WindowTask) as runner:
        for number, step in enumerate(runner.commit_steps, start=1):
            # The first one is late, as the incarnation before has come further than that.
            for at in (-1100, 0, 4, -50, 2)[number == 1 :]:
                runner.send("kafka.in", key="a", value={"n": 1}, timestamp=1000 * number + at)
            runner.crash_before(step)
            runner.restart(same_host=same_host)
            runner.run()
            assert [r[3] for r in _out(runner)] == [3] * (number - 1)


@pytest.mark.parametrize(
    ("kept", "serde", "record", "expected"),
    [
        ({"span": Session(1), "aggregate": Aggregate(int, max)}, "long", None, "give merge"),
        ({"emit": "often"}, "long", None, "must be 'close' or 'update'"),
        ({"lateness_ms": -1}, "long", None, "must be at least 0"),
        ({}, "integer", None, "cannot carry times: set stores.windows.msg.serde to json"),
        ({}, "bytes", None, "stores.windows.msg.serde = 'bytes': .* not int; write json, or"),
        ({"aggregate": Aggregate(list, max)}, "long", None, "begin with .*: .* not list; write"),
        ({}, "long", {"key": None}, "must be str, not NoneType: give key=, or set"),
        ({"aggregate": Aggregate(int, lambda *_: None)}, "json", {"key": "a"}, "None is none"),
    ],
)
def test_what_does_not_fit_fails_the_task_in_one_line(
    kept: dict[str, Any], serde: str, record: dict[str, Any] | None, expected: str
) -> None:
    """With the remedy."""
    KEPT.update(kept)
    if record is None:
        with (
            pytest.raises(TaskFailedError, match=expected),
            TestRunner(config(serde), task=WindowTask),
        ):
            pass
        return
    with TestRunner(config(serde), task=WindowTask) as runner:
        runner.send("kafka.in", value={"n": 1}, timestamp=1_700_000_000_000, **record)
        with pytest.raises(TaskFailedError, match=expected):
            runner.run()


@pytest.mark.parametrize("serde", ["long", "json"])
def test_an_aggregate_may_begin_with_infinity(serde: str) -> None:
    """No store keeps it: a minimum is a number once the window has a record."""
    KEPT["aggregate"] = Aggregate(
        lambda: [math.inf] if serde == "json" else math.inf,
        lambda found, value: [value["n"]] if serde == "json" else min(found, value["n"]),
    )
    with TestRunner(config(serde), task=WindowTask) as runner:
        runner.send("kafka.in", key="a", value={"n": 4}, timestamp=1_700_000_000_000)
        assert runner.run() == 1


def _refusing(total: int, value: dict[str, int]) -> int:
    if value["n"] < 0:
        raise ValueError("negative")
    return total + value["n"]


@pytest.mark.parametrize("span", [Hopping(20, 10), Session(10)])
def test_what_an_aggregate_raises_is_not_ignored(span: Hopping | Session) -> None:
    """It came out of a store's windows: nothing of the transaction is kept."""
    KEPT.update(span=span, aggregate=Aggregate(int, _refusing, lambda a, b: a + b))
    with TestRunner(config(task__ignored__exceptions="*"), task=WindowTask) as runner:
        _sent(runner, ("a", 11, 1))
        with pytest.raises(TaskFailedError, match="offset 1: ValueError: negative"):
            _sent(runner, ("a", 15, -1))
        runner.restart()
        assert runner.checkpoint() == {"kafka.in.0": 0}


def test_a_record_without_a_time_is_an_error() -> None:
    """It belongs to no window."""
    with TestRunner(config(), task=WindowTask) as runner:
        runner.send("kafka.in", key="a", value={"n": 1}, timestamp=-1)
        with pytest.raises(TaskFailedError, match="offset 0 has no timestamp: give at_ms"):
            runner.run()


@pytest.mark.parametrize("wrong", [(0, 0), (10, 0), (10, 3), (5, 10)])
def test_spans_that_do_not_fit_are_refused(wrong: tuple[int, int]) -> None:
    """When they are made."""
    with pytest.raises(ValueError, match="multiple of the step"):
        Hopping(*wrong)
    with pytest.raises(ValueError, match="must be at least 1"):
        Session(0)
    for span in (Tumbling, Session):
        with pytest.raises(ValueError, match="must be at most 100000000000000"):
            span(10**15)


_RECORDS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(-30, 30), st.integers(1, 9)), max_size=12
)


def _sessions(records: list[tuple[str, int, int]], gap: int) -> list[list[Any]]:
    """What sessions of records that are never late come to, from their definition."""
    found: list[list[Any]] = []
    for key in "ab":
        own = sorted((at, n) for k, at, n in records if k == key)
        for index, (at, n) in enumerate(own):
            if index and at - own[index - 1][0] < gap:
                found[-1][2] = at + gap
                found[-1][3] += n
            else:
                found.append([key, at, at + gap, n, True])
    return sorted(found, key=lambda r: (r[2], r[1], r[0]))


@pytest.mark.search
@settings(max_examples=40, deadline=None)
@given(_RECORDS, st.sampled_from([1, 3, 100]), st.sampled_from(["tumbling", "hopping", "session"]))
def test_windows_are_what_their_definition_says(
    records: list[tuple[str, int, int]], rows: int, kind: str
) -> None:
    """Whatever the order within the lateness, and however records come together in batches."""
    KEPT.clear()
    spans: dict[str, Hopping | Session] = {
        "tumbling": Tumbling(10),
        "hopping": Hopping(20, 10),
        "session": Session(7),
    }
    span = spans[kind]
    KEPT.update(span=span, lateness_ms=60)
    with TestRunner(config(factory="in-memory"), task=WindowTask, batch_rows=rows) as runner:
        for key, at, n in (*records, ("a", 100_000, 1)):
            runner.send("kafka.in", key=key, value={"n": n, "at": at})
        runner.run()
        if isinstance(span, Session):
            expected = _sessions(records, span.gap_ms)
        else:
            sums: dict[tuple[int, int, str], int] = {}
            for key, at, n in records:
                for start, end in span.windows(at):
                    place = (end, start, key)
                    sums[place] = sums.get(place, 0) + n
            expected = [[k, s, e, n, True] for (e, s, k), n in sorted(sums.items())]
        assert _out(runner) == expected


_BATCH_SUM = Aggregate(init=int, add=lambda total, row: total + row["n_sum"])


@pytest.mark.parametrize("span", [Tumbling(10), Hopping(20, 10)])
def test_a_table_comes_to_what_its_rows_come_to(span: Hopping) -> None:
    """One after the other, as long as none is late within it."""
    records = [("a", 1, 1), ("b", 5, 2), ("a", 9, 4), ("b", 11, 8), ("a", 31, 16), ("c", 77, 32)]
    found: list[list[list[Any]]] = []
    for task, aggregate in ((WindowTask, None), (WindowBatch, _BATCH_SUM)):
        KEPT.clear()
        KEPT.update(span=span, **({"aggregate": aggregate} if aggregate else {}))
        with TestRunner(config(), task=task) as runner:
            _sent(runner, *records[:3])
            runner.restart()
            _sent(runner, *records[3:])
            found.append(_out(runner))
    assert found[0] == found[1]
    assert found[0]


def test_rows_for_windows_that_were_closed_before_the_table_are_late() -> None:
    """Those for windows that the table itself closes are not."""
    KEPT.update(aggregate=_BATCH_SUM, late=True)
    with TestRunner(config(), task=WindowBatch) as runner:
        _sent(runner, ("a", 25, 1), ("a", 3, 2))
        assert _out(runner) == [["a", 0, 10, 2, True]]
        _sent(runner, ("a", 4, 4), ("b", 26, 8))
        late = [(r.key, json.loads(r.value)) for r in runner.output("kafka.late")]
        assert late == [(b"a", [4, 4])]
        assert len(_out(runner)) == 1


@pytest.mark.parametrize(
    ("kept", "key", "at", "expected"),
    [
        (SESSIONS, "a", 1, "sessions take one record after the other"),
        ({}, None, 1, "a row has no 'key'"),
        ({}, "a", -1, "a row has no time in 'timestamp'"),
    ],
)
def test_tables_that_do_not_fit_fail_the_task_in_one_line(
    kept: dict[str, Any], key: str | None, at: int, expected: str
) -> None:
    """With the remedy."""
    KEPT.update(kept)
    with TestRunner(config(), task=WindowBatch) as runner:
        runner.send("kafka.in", key=key, value={"n": 1}, timestamp=at)
        with pytest.raises(TaskFailedError, match=expected):
            runner.run()


@pytest.mark.parametrize("same_host", [True, False])
def test_a_crash_before_any_step_counts_each_row_of_a_table_once(*, same_host: bool) -> None:
    """As record by record."""
    KEPT.update(aggregate=_BATCH_SUM)
    with TestRunner(config(), task=WindowBatch) as runner:
        for number, step in enumerate(runner.commit_steps, start=1):
            for at in (0, 4, 2):
                runner.send("kafka.in", key="a", value={"n": 1}, timestamp=1000 * number + at)
            runner.crash_before(step)
            runner.restart(same_host=same_host)
            runner.run()
            assert [r[3] for r in _out(runner)] == [3] * (number - 1)
