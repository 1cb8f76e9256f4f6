"""Spark's class-data archive at its first use: made once, in the cache, and never in the way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from homeport.container.spark import class_data

MAKES = "import pathlib, sys; pathlib.Path(sys.argv[1], 'spark.jsa').touch()"
FAILS = "import sys; sys.exit('no Spark')"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the archive, in a cache of the test's own."""
    made = tmp_path / "spark" / "0123"
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(class_data, "made_folder", lambda: made)
    monkeypatch.setattr(class_data, "java_of_host", lambda: "java")
    return made


def _program(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    command = [sys.executable, "-c", script]
    monkeypatch.setattr(class_data, "_command", lambda folder: [*command, str(folder)])


def test_it_is_made_once_with_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is left, and the second start does not make it."""
    said: list[str] = []
    _program(monkeypatch, MAKES)
    class_data.ensure(said.append)
    class_data.ensure(said.append)
    assert said == [f"making Spark's class-data archive in {folder} (a minute, once)"]
    assert sorted(p.name for p in folder.parent.rglob("*")) == [".lock", "0123", "spark.jsa"]


def test_a_failure_is_a_warning_that_names_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs no second start; without the log it is tried again."""
    said: list[str] = []
    _program(monkeypatch, FAILS)
    class_data.ensure(said.append)
    class_data.ensure(said.append)
    log = folder.with_suffix(".log")
    reason = f"{log} has the reason; remove that file to try again"
    assert said[1:] == [f"warning: without class-data archive Spark starts slowly: {reason}"]
    assert log.read_text() == "no Spark\n"
    log.unlink()
    class_data.ensure(said.append)
    assert len(said) == 4


def test_without_java_or_a_folder_nothing_is_made(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that others can write is refused in one line."""
    said: list[str] = []
    monkeypatch.setattr(class_data, "java_of_host", lambda: None)
    class_data.ensure(said.append)
    assert said == []
    monkeypatch.setattr(class_data, "java_of_host", lambda: "java")
    folder.parent.mkdir()
    folder.parent.chmod(0o777)
    class_data.ensure(said.append)
    (line,) = said
    assert line.startswith(f"warning: without class-data archive Spark starts slowly: {tmp_path}")
