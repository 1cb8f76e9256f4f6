"""scripts/bench --record: what is kept of a run, its pages, and what keeps it from being kept."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as program
from benchmarks import recorded
from benchmarks.options import parse_arguments
from benchmarks.recorded import NAME, Recorded, commit_of, figures_of, keep, read
from benchmarks.report import BenchmarkError, Row, at_most, failed, figure

from pages_check import figures_page
from pages_check.figures_page import INDEX, pages_of

ROWS = [at_most("time | of one", 3, 2, "s"), at_most("  memory", 1, 2, "MB"), figure("rate", 5, "")]
RUN = Recorded("A title", "scripts/bench x", "2026-12-01", "abc", "quick", "slow", figures_of(ROWS))


def _git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ["git", *own, *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone without figures."""
    (tmp_path / "scripts" / "benchmarks").mkdir(parents=True)
    (tmp_path / "code").write_text("1")
    _git(tmp_path, "init")
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "commit", "-m", "first")
    return tmp_path


def test_a_later_run_replaces_its_own_sections_alone(clone: Path) -> None:
    """Those of other benchmarks and sections stay."""
    keep("startup", {"task": RUN, "pipeline": RUN}, clone)
    keep("commit", {"hot": RUN}, clone)
    later = Recorded("Later", "c", "d", "e", "f", "g", ())
    keep("startup", {"pipeline": later}, clone)
    assert read(clone) == {"commit": {"hot": RUN}, "startup": {"pipeline": later, "task": RUN}}


def test_pages_have_the_rows_of_each_run_and_what_it_ran_on() -> None:
    """The index links a page for each benchmark; a bar in a cell is escaped."""
    pages = pages_of({"startup": {"task": RUN}})
    assert "- [`startup`](figures/startup.md): task\n" in pages[INDEX]
    text = pages["docs/figures/startup.md"]
    assert "A title. `scripts/bench x`, 2026-12-01, commit abc.\n" in text
    assert "At the begin: quick; at the end: slow.\n" in text
    assert text.splitlines()[-3:] == [
        r"| time \| of one | 3 s | <= 2 s | **missed** |",
        "| memory | 1 MB | <= 2 MB | reached |",
        "| rate | 5 |  |  |",
    ]


def test_figures_name_a_commit_that_has_all_changes(clone: Path, tmp_path: Path) -> None:
    """Only figures themselves may differ from it."""
    keep("commit", {"hot": RUN}, clone)
    (clone / "docs" / "figures").mkdir(parents=True)
    (clone / INDEX).write_text("new")
    assert len(commit_of(clone)) == 8
    (clone / "code").write_text("2")
    with pytest.raises(BenchmarkError, match="--record: code is not committed: commit it"):
        commit_of(clone)
    with pytest.raises(
        BenchmarkError, match=r"git status fails in .*: figures are kept in a clone"
    ):
        commit_of(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["[", '{"a": 1}', '{"commit": {"hot": {"title": "t"}}}'])
def test_a_damaged_file_is_named_with_the_remedy(clone: Path, text: str) -> None:
    """One line."""
    (clone / NAME).write_text(text)
    with pytest.raises(BenchmarkError, match=f"--record: {NAME} has no figures .*: git checkout"):
        read(clone)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, clone: Path) -> list[Row]:
    """The rows that the next run of the program finds; it keeps them in ``clone``."""
    rows: list[Row] = []
    module = importlib.import_module("benchmarks.throughput.runs")
    monkeypatch.setattr(module, "SECTIONS", {"front": ("Title", lambda *_: rows)})
    words = ["bench", "throughput", "--section", "front", "--record"]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(recorded, "ROOT", clone)
    monkeypatch.setattr(figures_page, "write", lambda: None)
    return rows


def test_a_run_is_kept_with_its_command(run: list[Row], clone: Path) -> None:
    """Date, commit and machine are of this run."""
    run.extend(ROWS)
    assert program.main() == 0
    kept = read(clone)["throughput"]["front"]
    assert (kept.title, kept.command) == ("Title", "scripts/bench throughput --section front")
    assert kept.commit == commit_of(clone)
    assert kept.rows == RUN.rows
    assert "ns a turn" in kept.begin


def test_a_run_that_lacks_a_figure_is_not_kept(
    run: list[Row], clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others would stand beside an earlier run's."""
    run.extend([*ROWS, failed("last", "it ended")])
    assert program.main() == 1
    assert "error: nothing is recorded, as a figure is missing" in capsys.readouterr().err
    assert read(clone) == {}


def test_nothing_is_measured_that_cannot_be_kept(
    run: list[Row], clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Minutes later would be too late."""
    run.extend(ROWS)
    (clone / "code").write_text("2")
    assert program.main() == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: --record: code is not committed")
    assert shown.out == ""


def test_without_the_option_nothing_is_kept() -> None:
    """It is an option like any other."""
    assert not parse_arguments(["commit"]).record
    assert parse_arguments(["commit", "--record"]).record
