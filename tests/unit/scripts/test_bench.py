"""scripts/bench: its options, what it prints, and the parts that count by themselves."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from benchmarks import processes
from benchmarks.__main__ import main
from benchmarks.allocator.placement import measured
from benchmarks.commit.tasks import distinct_records, hot_records
from benchmarks.coordinator.callers import Calls, call_at_once, hold_at_once
from benchmarks.coordinator.model import fewest_moves
from benchmarks.coordinator.model_server import TOKEN, _Backend, model_of
from benchmarks.options import SECTIONS, parse_arguments
from benchmarks.report import at_least, at_most, failed, figure, print_section
from coordinator_server import Loop

from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.model.codec import encode_job_model


def test_all_sections_are_measured_unless_some_are_named() -> None:
    """In their own order, each once."""
    assert parse_arguments(["coordinator"]).sections == tuple(SECTIONS["coordinator"])
    named = ["coordinator", "--section", "http", "--section", "model", "--section", "http"]
    assert parse_arguments(named).sections == ("model", "http")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "NAME"),
        (["other"], "coordinator"),
        (["coordinator", "--section", "x"], "coordinator has model, bootstrap, http"),
        (["coordinator", "--chart"], "--chart"),
        (
            ["throughput", "--contestants", "storm"],
            "--contestants storm: there are ours, class, quix",
        ),
        (["throughput", "--records", "0"], "--records = 0: it must be at least 1"),
        (["commit", "--records", "5"], "--records is for throughput"),
        (["commit", "--contestants", "ours"], "--contestants is for throughput"),
        (["restore", "--runs", "7"], "--runs"),
        (["failover", "--runs", "0"], "--runs"),
    ],
)
def test_a_wrong_option_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, before anything is set up."""
    with pytest.raises(SystemExit) as caught:
        parse_arguments(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_every_section_is_in_its_module() -> None:
    """Its title and rows are found where the command looks for them."""
    for name, sections in SECTIONS.items():
        for section, module in sections.items():
            title, rows = importlib.import_module(f"benchmarks.{name}.{module}").SECTIONS[section]
            assert title
            assert callable(rows)


def test_the_simulated_job_is_placed_and_survives_the_loss_of_a_host() -> None:
    """Every active and every standby runs, and runs again on the hosts that are left."""
    found = measured(20, 1, 10, 1)
    assert (found["running"], found["running_again"]) == (40, 40)


def test_a_figure_stands_beside_its_target(capsys: pytest.CaptureFixture[str]) -> None:
    """Reached or missed where a target was set, nothing where none was."""
    rows = [
        at_most("time", 1.2345, 2, "s"),
        at_most("memory", 123.4, 100, "MB"),
        at_least("served", 999, 1000, ""),
        figure("rate", 21203.7, "records/s"),
    ]
    print_section("Title", rows)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        "",
        "Title",
        "time 1.23 s <= 2 s reached",
        "memory 123 MB <= 100 MB MISSED",
        "served 999 >= 1,000 MISSED",
        "rate 21,204 records/s",
    ]


def test_a_plot_shows_rates_as_bars(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside each other, the longest as long as any; other figures have no bar."""
    rows = [
        at_least("fast", 200, 100, "records/s"),
        figure("slow", 50, "records/s"),
        figure("time", 3, "s"),
    ]
    print_section("Title", rows, plot=True)
    bars = capsys.readouterr().out.splitlines()[-2:]
    assert [bar.split() for bar in bars] == [
        ["fast", "#" * 40, "200", "records/s"],
        ["slow", "#" * 10, "50", "records/s"],
    ]
    print_section("Title", rows[1:], plot=True)
    assert "#" not in capsys.readouterr().out


def test_what_could_not_be_measured_has_a_row_and_the_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows after it are printed, too."""
    rows = [figure("first", 1, "s"), failed("second", "it ended"), figure("third", 3, "s")]
    module = importlib.import_module("benchmarks.throughput.runs")
    monkeypatch.setattr(sys, "argv", ["bench", "throughput", "--section", "front"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("benchmarks.__main__.print_machine", lambda: None)
    for expected, some in ((1, rows), (0, rows[:1])):
        monkeypatch.setattr(module, "SECTIONS", {"front": ("Title", lambda *_, r=some: r)})
        assert main() == expected
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown[:5] == ["", "Title", "first 1 s", "second failed it ended", "third 3 s"]


def test_the_records_of_a_commit_benchmark_have_no_order() -> None:
    """Each key of its own partition; distinct ones come once each."""
    records = list(distinct_records(1000, 1))
    keys = [key for _, key, _ in records]
    assert len(set(keys)) == 1000
    assert keys != sorted(keys)
    again = list(distinct_records(1000, 2))
    assert sorted(keys) == sorted(key for _, key, _ in again)
    assert {key: place for place, key, _ in records} == {key: place for place, key, _ in again}
    hot = list(hot_records(1000, 10, 1))
    assert len({key for _, key, _ in hot}) == 10
    assert all(json.loads(value)["n"] < 1000 for _, _, value in hot)


def _fewest_by_trying(sizes: list[int], containers: int) -> int:
    owners = [container for container, size in enumerate(sizes) for _ in range(size)]
    fewest = len(owners)
    for assignment in itertools.product(range(containers), repeat=len(owners)):
        counts = Counter(assignment)
        shares = [counts[container] for container in range(containers)]
        if max(shares) - min(shares) <= 1:
            moved = sum(a != b for a, b in zip(assignment, owners, strict=True))
            fewest = min(fewest, moved)
    return fewest


@pytest.mark.parametrize(
    ("sizes", "containers"),
    [([2, 2], 3), ([3, 3], 4), ([3, 1], 2), ([5, 1], 3), ([2, 2, 2], 3), ([0, 4], 2), ([6], 4)],
)
def test_the_fewest_moves_are_the_fewest(sizes: list[int], containers: int) -> None:
    """The formula agrees with trying all assignments."""
    assert fewest_moves(sizes, containers) == _fewest_by_trying(sizes, containers)


def test_the_served_model_has_the_requested_size() -> None:
    """Containers, tasks of each, and bytes of configuration."""
    model = model_of(20, 3, 50_000)
    assert len(model.containers) == 20
    assert {len(container.tasks) for container in model.containers.values()} == {3}
    assert model.max_change_log_stream_partitions == 60
    small = len(encode_job_model(model_of(20, 3, 0), mask_secrets=False))
    assert 50_000 <= len(encode_job_model(model, mask_secrets=False)) - small < 51_000


def _request(path: str) -> bytes:
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    return f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode()


@contextmanager
def _serving() -> Iterator[tuple[int, int]]:
    """(port, bytes of the model) of a server of a small job."""
    model, loop = model_of(2, 2, 0), Loop()
    server = JobCoordinatorServer(_Backend(model), TOKEN, "127.0.0.1", 0)
    try:
        _, port = loop.run(server.start())
        yield port, len(encode_job_model(model, mask_secrets=False))
    finally:
        loop.run(server.stop())
        loop.close()


def test_callers_count_what_they_got() -> None:
    """Each good answer has its time and its bytes; the others have failed."""
    with _serving() as (port, length):
        done = call_at_once(port, [_request("/"), _request("/nothing"), _request("/")])
        hold_at_once(port, [_request("/")] * 3)
    assert (len(done.seconds), done.failed) == (2, 1)
    assert 2 * length < done.received < 2 * length + 2000
    assert done.quantile(0) <= done.quantile(0.5) <= done.quantile(1) <= done.wall_s
    refused = call_at_once(port, [_request("/")])
    assert (refused.seconds, refused.failed) == ([], 1)
    assert str(Calls().quantile(0.5)) == "nan"


_TAKES_50_MB = """
import os
from benchmarks.processes import forget_peak, peak_mb, resident_mb
forget_peak(os.getpid())
before = resident_mb()
taken = b"x" * 50_000_000
del taken
print(peak_mb() - before)
forget_peak(os.getpid())
print(peak_mb() - before)
"""


def test_memory_is_what_linux_says() -> None:
    """The peak follows what the process takes, and can be forgotten.

    In a process of its own: one that has run other tests has memory to spare.
    """
    folder = str(Path(processes.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", _TAKES_50_MB],
        env={**os.environ, "PYTHONPATH": folder},
        capture_output=True,
        text=True,
        check=True,
    )
    taken, forgotten = map(float, done.stdout.split())
    assert taken > 40
    assert forgotten < 40
