"""Bounded data sets under the TestRunner: versions that are built beside the one that is served."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from homeport.container.progress.offset_file import encode
from homeport.testing import TestRunner
from tests.unit.testing.joining_job import PARTITIONS, Join, config

_TASK = "Partition 0"
_SHARE = "stores.airlines.adstore.version.minimum.share.percent"


def _runner(
    factory: str = "rocksdb",
    partitions: int = 1,
    folder: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> TestRunner:
    keys = {
        **config(factory),
        "task.broadcast.inputs": f"kafka.airlines#[0-{partitions - 1}]",
        "stores.airlines.adstore.version.marker.header": "version",
        **(more or {}),
    }
    counts = {**PARTITIONS, "kafka.airlines": partitions}
    return TestRunner(keys, task=Join, partitions=counts, folder=folder)


def _folders(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "state/airlines/container-0").glob("v*"))


def _mark(runner: TestRunner, text: str, partition: int = 0) -> None:
    headers = {"version": text.encode()}
    runner.send("kafka.airlines", key="", value="", partition=partition, headers=headers)


def _send(runner: TestRunner, partition: int = 0, **names: str) -> None:
    for airline, name in names.items():
        runner.send("kafka.airlines", key=airline, value=name, partition=partition)


def _version(runner: TestRunner, **names: str) -> None:
    _mark(runner, "begin")
    _send(runner, 0, **names)
    _mark(runner, "end")


def _fly(runner: TestRunner, *airlines: str) -> list[str]:
    before = len(runner.output("kafka.out"))
    for airline in airlines:
        runner.send("kafka.flights", key="N1", value={"airline": airline}, partition=0)
    runner.run()
    return [record.value.split("/")[1] for record in runner.output("kafka.out")[before:]]


def _held(runner: TestRunner) -> dict[str, str]:
    return dict(runner.store("airlines", task=_TASK).all())


@pytest.mark.parametrize("factory", ["rocksdb", "in-memory"])
def test_a_version_is_served_as_a_whole_and_the_next_takes_its_place(factory: str) -> None:
    """Old names until the end marker, new ones after it, and what the new one lacks is gone."""
    with _runner(factory) as runner:
        _version(runner, UA="United", AA="American", DL="Delta")
        assert _fly(runner, "UA", "AA", "DL") == ["United", "American", "Delta"]
        _mark(runner, "begin")
        _send(runner, UA="Untied", AA="Amerikan")
        assert _fly(runner, "UA", "AA", "DL") == ["United", "American", "Delta"]
        _mark(runner, "end")
        assert _fly(runner, "UA", "AA", "DL") == ["Untied", "Amerikan", "-"]
        assert _held(runner) == {"UA": "Untied", "AA": "Amerikan"}


def test_other_inputs_wait_for_the_first_version_of_a_bootstrap_stream() -> None:
    """Half a version is none."""
    with _runner() as runner:
        _send(runner, UA="United")
        assert _fly(runner, "UA") == []
        _mark(runner, "end")
        runner.run()
        assert [record.value for record in runner.output("kafka.out")] == ["-/United/1"]


def test_a_task_waits_for_the_first_version_of_its_own_part_alone() -> None:
    """Each task has a part; that of the second one gets its end later. A drain waits for it."""
    more = {
        "systems.kafka.streams.airlines.samza.bootstrap": "false",
        "stores.planes.adstore.version.marker.header": "version",
    }
    with _runner(more=more) as runner:
        for partition in (1, 0):
            runner.send("kafka.planes", key="N1", value={"model": "737"}, partition=partition)
            runner.send("kafka.flights", key="N1", value={"airline": "UA"}, partition=partition)
        end = {"version": b"end"}
        runner.send("kafka.planes", key="", value={}, partition=0, headers=end)
        runner.run()
        assert [record.value for record in runner.output("kafka.out")] == ["737/-/1"]
        processed = [runner.checkpoint(task=f"Partition {n}") for n in (0, 1)]
        assert [own.get(f"kafka.flights.{n}") for n, own in enumerate(processed)] == [0, -1]
        runner.send("kafka.planes", key="", value={}, partition=1, headers=end)
        runner.drain()
        assert [record.value for record in runner.output("kafka.out")] == ["737/-/1"] * 2


def test_without_bootstrap_nothing_waits_and_nothing_is_half() -> None:
    """Before the first version the store is empty."""
    with _runner(more={"systems.kafka.streams.airlines.samza.bootstrap": "false"}) as runner:
        _send(runner, UA="United")
        assert _fly(runner, "UA") == ["-"]
        _mark(runner, "end")
        assert _fly(runner, "UA") == ["United"]


def test_a_version_that_shrank_or_began_again_is_not_served(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The one before stays, the log says why, and no start judges it again."""
    with _runner(folder=tmp_path, more={_SHARE: "60"}) as runner:
        _version(runner, UA="United", AA="American")
        _version(runner, UA="Untied")
        assert _fly(runner, "UA", "AA") == ["United", "American"]
        assert "version 2 of 1 records is not served: it is much smaller" in caplog.text
        assert _folders(tmp_path) == ["v1"]
        caplog.clear()
        runner.restart()
        assert runner.run() == 0
        assert "version 2" not in caplog.text
        assert _fly(runner, "UA", "AA") == ["United", "American"]
        _mark(runner, "begin")
        _send(runner, UA="Broken")
        _version(runner, UA="Third", AA="Third")
        assert _fly(runner, "UA", "AA") == ["Third", "Third"]
        assert "its producer began again in the middle of it; version 1 is served" in caplog.text


def test_a_data_set_of_several_partitions_is_whole_when_all_have_ended_it() -> None:
    """By the numbers of their markers; a partition may be versions ahead."""
    with _runner(partitions=2) as runner:
        for partition, airline in ((0, "UA"), (1, "AA")):
            _mark(runner, "begin 7", partition)
            _send(runner, partition, **{airline: "seven"})
            _mark(runner, "end 7", partition)
        assert _fly(runner, "UA", "AA") == ["seven", "seven"]
        _mark(runner, "begin 8", 0)
        _send(runner, 0, UA="eight")
        _mark(runner, "end 8", 0)
        assert _fly(runner, "UA", "AA") == ["seven", "seven"]
        _mark(runner, "begin 8", 1)
        _send(runner, 1, AA="eight")
        _mark(runner, "end 8", 1)
        assert _fly(runner, "UA", "AA") == ["eight", "eight"]


@pytest.mark.parametrize("same_host", [True, False])
def test_a_restart_goes_on_with_the_version_that_was_served_and_with_the_one_in_work(
    *, same_host: bool
) -> None:
    """On the same host nothing is read again."""
    with _runner() as runner:
        _version(runner, UA="United")
        _mark(runner, "begin")
        _send(runner, UA="Untied")
        runner.run()
        runner.restart(same_host=same_host)
        assert runner.run() == (0 if same_host else 5)
        assert _held(runner) == {"UA": "United"}
        _mark(runner, "end")
        assert _fly(runner, "UA") == ["Untied"]


_STEPS = [
    f"{step} airlines/container-0"
    for step in (
        "write-adjunct",
        "flush-version",
        "write-catalogue",
        "switch-version",
        "drop-version",
        "flush-adjunct",
        "touch-adjunct",
    )
]


def test_a_crash_is_tried_before_each_step_of_a_switch() -> None:
    """The list is the job's own."""
    with _runner() as runner:
        assert [step for step in runner.commit_steps if "airlines" in step] == _STEPS


def _crashes() -> Iterator[Any]:
    for step in _STEPS:
        is_quick = step.startswith("drop-version")
        yield pytest.param(step, True, marks=() if is_quick else pytest.mark.long)
        yield pytest.param(step, False, marks=pytest.mark.long)


@pytest.mark.parametrize(("step", "same_host"), list(_crashes()))
def test_a_crash_before_any_step_of_a_switch_recovers(
    step: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, same_host: bool
) -> None:
    """The next start serves the new version, whole, and flights count once; nothing old is left."""
    with _runner(folder=tmp_path) as runner:
        _version(runner, UA="United", AA="American")
        assert _fly(runner, "UA") == ["United"]
        _version(runner, UA="Untied", DL="Delta")
        runner.send("kafka.flights", key="N1", value={"airline": "UA"}, partition=0)
        runner.crash_before(step)
        runner.restart(same_host=same_host)
        assert _held(runner) in (
            {},
            {"UA": "United", "AA": "American"},
            {"UA": "Untied", "DL": "Delta"},
        )
        runner.run()
        assert _held(runner) == {"UA": "Untied", "DL": "Delta"}
        values = [record.value for record in runner.output("kafka.out")]
        assert values == ["-/United/1", "-/Untied/2"]
        caplog.set_level(logging.INFO)
        runner.restart()
        assert runner.run() == 0
        assert "is served" not in caplog.text
        assert _held(runner) == {"UA": "Untied", "DL": "Delta"}
        assert _folders(tmp_path) == ["v2"]
        assert "is filled again" not in caplog.text


def _no_catalogue(store: Path) -> None:
    (store / "CATALOGUE").unlink()


def _no_sense(store: Path) -> None:
    (store / "CATALOGUE").write_bytes(encode("{}"))


def _no_version(store: Path) -> None:
    shutil.rmtree(store / "v1")


def _no_file(store: Path) -> None:
    (store / "v1" / "CURRENT").unlink()


def _condemned(store: Path) -> None:
    (store / "v2" / "DAMAGED").write_text("it was found so")


@pytest.mark.long
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_no_catalogue, "CATALOGUE is missing"),
        (_no_sense, "it holds '{}', which is not the text of a catalogue"),
        (_no_version, "version 1, which was served, is missing"),
        (_no_file, "version 1: RocksDB's file CURRENT is missing"),
        (_condemned, "version 2: it was found so"),
    ],
)
def test_versions_that_cannot_be_read_are_built_again(
    spoil: Callable[[Path], None], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All of them, from the stream, and the reason is in the log."""
    with _runner(folder=tmp_path) as runner:
        _version(runner, UA="United")
        _mark(runner, "begin")
        runner.run()
        runner.stop()
        spoil(tmp_path / "state/airlines/container-0")
        runner.restart()
        assert reason in caplog.text
        assert _held(runner) == {}
        assert _fly(runner, "UA") == ["United"]


def test_what_is_wrong_with_a_stream_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    """A version without end, and records that belong to none."""
    late = {
        "stores.airlines.adstore.version.late.ms": "1000",
        "systems.kafka.streams.airlines.samza.bootstrap": "false",  # it would end the container
    }
    with _runner(partitions=2, more=late) as runner:
        _send(runner, 0, UA="early")
        _mark(runner, "begin 1", 0)
        _send(runner, 0, UA="United")
        runner.run()
        for _ in range(3):
            runner.advance(20_000)
        assert caplog.text.count("container-0: version 1 has no end yet") == 1
        assert caplog.text.count("container-0: 1 records or markers belong to no version") == 1
