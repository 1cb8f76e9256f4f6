"""Managers of a job's own under the TestRunner: they decide what a record brings to its store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from homeport.container.adjunct.user_manager import ManagerFailedError
from homeport.container.processing.records import UndecodableError
from homeport.testing import TestRunner
from tests.unit.testing import managing_job
from tests.unit.testing.counting_job import feed
from tests.unit.testing.joining_job import PARTITIONS, Join, config

TASKS = ("Partition 0", "Partition 1")


def _runner(**more: str) -> TestRunner:
    keys = {"adstore__manager__factory": f"{managing_job.__name__}:Managers", **more}
    return TestRunner(config(**keys), task=Join, partitions=PARTITIONS)


def _plane(runner: TestRunner, key: Any, value: Any) -> None:  # noqa: ANN401 - the serdes' types
    runner.send("kafka.planes", key=key, value=value, partition=0)


def _planes(runner: TestRunner) -> dict[str, Any]:
    return dict(runner.store("planes", task=TASKS[0]).all())


@pytest.mark.parametrize("is_crash", [False, True])
def test_a_record_brings_as_many_entries_as_its_manager_puts(*, is_crash: bool) -> None:
    """None, one or several, or takes one away; no task sees it, and each is processed once."""
    with _runner() as runner:
        _plane(runner, "fleet", {"model": "737", "tails": ["N1", "N2"]})
        _plane(runner, "skip", {"model": "x"})
        _plane(runner, "N3", {"model": "747"})
        runner.send("kafka.airlines", key="UA", value="United", partition=1)
        assert runner.run() == 4
        assert not runner.output("kafka.out")
        assert _planes(runner) == {n: {"model": "737"} for n in ("N1", "N2")} | {
            "N3": {"model": "747"}
        }
        _plane(runner, "N3", None)
        feed(runner, "kafka.flights", key="N2", value={"airline": "UA"}, partition=0)
        assert [record.value for record in runner.output("kafka.out")] == ["737/UNITED/1"]
        if is_crash:
            runner.crash()
        runner.restart()
        assert runner.run() == 0
        assert set(_planes(runner)) == {"N1", "N2"}
        assert managing_job.made[TASKS[0]].seen == []


def test_the_factory_has_the_documents_arguments() -> None:
    """One manager for each task; the first fills what the container shares."""
    with _runner() as runner:
        feed(runner, "kafka.flights", key="N1", value={"airline": "U"}, partition=0)
        runner.restart()
        first, last = (managing_job.given[task] for task in TASKS)
        assert (first.task_name, first.task_inputs) == (TASKS[0], "kafka.flights, kafka.planes")
        assert sorted(last.ssps) == [
            *(("kafka", "airlines", n) for n in (0, 1)),
            ("kafka", "flights", 1),
            ("kafka", "planes", 1),
        ]
        assert (first.writes_container_stores, last.writes_container_stores) == (True, False)
        assert first.container_storage.adjunct("airlines") is not None
        assert last.container_storage.adjunct("airlines") is None
        assert last.task_storage.adjunct("planes") is not None
        assert last.task_storage.adjunct("airlines") is None
        assert first.offsets.last_processed(TASKS[0], ("kafka", "flights", 0)) == 0
        assert first.offsets.last_processed(TASKS[1], ("kafka", "flights", 1)) is None
        assert first.offsets.last_processed("no-task", ("kafka", "flights", 1)) is None
        assert not first.task_storage.reset_partitions()
        runner.restart(same_host=False)
        reset = managing_job.given[TASKS[1]].task_storage.reset_partitions()
        assert list(reset) == [("kafka", "planes", 1)]


@pytest.mark.parametrize(
    ("key", "value", "story"),
    [
        ("leave", {"model": "x"}, "process returned False, and a record of a store's stream is"),
        ("raise", {"model": "x"}, "ValueError: cannot do it"),
        ("other", {"model": "x"}, "records of kafka.airlines alone fill it"),
        ("N1", {"model": "x", "tails": ["none"]}, "store planes: a key may not be None"),
        ("\0homeport.parts", {"model": "x"}, "store planes: the key is a reserved one"),
        (
            "N1",
            {"model": "x", "tails": [1]},
            "store planes: its key and value: TypeError: the serde 'string' carries str, not int",
        ),
    ],
)
def test_what_a_manager_may_not_do_ends_the_container_in_one_line(
    key: str, value: Mapping[str, Any], story: str
) -> None:
    """It names manager, place and rule."""
    with _runner() as runner:
        _plane(runner, "N0", {"model": "x"})
        _plane(runner, key, value)
        with pytest.raises(ManagerFailedError) as caught:
            runner.run()
        line = str(caught.value)
        assert line.startswith(
            f"{managing_job.__name__}:Managers: kafka.planes partition 0 offset 1: "
        )
        assert story in line
        assert "\n" not in line


def test_a_factory_that_fails_is_one_line() -> None:
    """At the start, before any input."""
    story = f"{managing_job.__name__}:Managers: ValueError: no manager today"
    with pytest.raises(ManagerFailedError) as caught, _runner(fails="yes") as runner:
        runner.run()
    assert str(caught.value) == story


def test_a_record_that_cannot_be_read_never_reaches_a_manager() -> None:
    """It is refused as it is without one."""
    with _runner() as runner:
        runner.send_bytes("kafka.planes", key=b"N1", value=b"{", partition=0)
        with pytest.raises(
            UndecodableError, match=r"kafka\.planes partition 0 offset 0: its value cannot be read"
        ):
            runner.run()


def test_markers_pass_no_manager() -> None:
    """Each version has what its records bring, some of them nothing, and some two entries."""
    with _runner(stores__planes__adstore__version__marker__key="mark") as runner:
        for key, value in (
            ("skip", {"model": "1"}),
            ("N1", {"model": "1", "tails": ["N1", "N2"]}),
            ("mark", "end"),
            ("N1", {"model": "2"}),
        ):
            body = value if key != "mark" else None
            if body is None:
                runner.send_bytes("kafka.planes", key=b"mark", value=b"end", partition=0)
            else:
                _plane(runner, key, body)
        runner.run()
        assert _planes(runner) == {"N1": {"model": "1"}, "N2": {"model": "1"}}
        runner.send_bytes("kafka.planes", key=b"mark", value=b"end", partition=0)
        runner.run()
        assert _planes(runner) == {"N1": {"model": "2"}}
        assert "mark" not in managing_job.made[TASKS[0]].seen
