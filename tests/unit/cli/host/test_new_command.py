"""``homeport new``: what it makes runs as it is; a wrong name changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.cli.main import run
from homeport.config.errors import HomeportError
from homeport.config.loading.loader import load
from homeport.config.settings.validation import validate


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["--task", "--pipeline", "--sql"])
def test_each_kind_is_a_configuration_that_is_taken(kind: str, tmp_path: Path) -> None:
    """Input, output and brokers are those of the command line."""
    streams = ["--input=events.clicks", "--output=events.totals", "--brokers=broker:1"]
    run(["new", "daily-totals", kind, *streams])
    config = load(str(tmp_path / "daily-totals" / "daily-totals.properties"), ())
    validate(config)
    assert config["task.inputs"] == "events.clicks"
    to = "task.pipeline.output" if kind == "--sql" else "task.outputs"
    assert config[to] == "events.totals"
    assert config["systems.events.consumer.bootstrap.servers"] == "broker:1"
    made = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    code = "sql" if kind == "--sql" else "py"
    assert made == {
        "daily-totals/README.md",
        "daily-totals/daily-totals.properties",
        f"daily-totals/package/daily_totals.{code}",
        "daily-totals/pytest.ini",
        "daily-totals/tests/test_daily_totals.py",
    }


@pytest.mark.parametrize("kind", ["--task", "--pipeline", "--sql"])
def test_its_readme_ends_in_no_refusal(kind: str, tmp_path: Path) -> None:
    """run-job refuses what run-local has run without --trial."""
    run(["new", "daily-totals", kind])
    text = (tmp_path / "daily-totals" / "README.md").read_text(encoding="utf-8")
    local, *more = [line for line in text.splitlines() if line.startswith("homeport run-local ")]
    assert "--trial" in local
    assert more == []
    assert "\nrun-job " in text


def test_the_test_of_a_new_job_passes_as_it_is(tmp_path: Path) -> None:
    """As its user runs it: pytest, in the folder of the job."""
    run(["new", "daily-totals"])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "daily-totals",
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["Daily"], "NAME = 'Daily': .*; write it as in daily-totals"),
        (["../up"], r"NAME = '\.\./up': .*; write"),
        (["class"], "NAME = 'class': .*; write"),
        (["json"], "NAME = 'json': Python has a module of that name; "),
        (["good", "--sql", "--pipeline"], "--pipeline and --sql exclude each other: "),
        (["good", "--input=clicks"], "--input = 'clicks': .* system.stream; as in kafka.orders"),
        (["good", "--output=other.x"], "--output = 'other.x': its system is not 'kafka', .*; "),
    ],
)
def test_what_cannot_be_is_one_line_and_makes_nothing(
    arguments: list[str], line: str, tmp_path: Path
) -> None:
    """It names the argument and the remedy."""
    with pytest.raises(HomeportError, match=line):
        run(["new", *arguments])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_has_something_is_left_alone(tmp_path: Path) -> None:
    """An empty one is used."""
    (tmp_path / "empty").mkdir()
    run(["new", "empty"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(HomeportError, match="NAME = 'full': there is such a folder here; "):
        run(["new", "full"])
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
