"""Spark's class-data archive at its first use: made once, in the cache, and never in the way."""

from __future__ import annotations

import importlib.util
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
    return made


def _program(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    command = [sys.executable, "-c", script]
    monkeypatch.setattr(class_data, "_command", lambda folder: [*command, str(folder)])


def test_it_is_made_once_with_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is left, and the second start does not make it."""
    lines: list[str] = []
    _program(monkeypatch, MAKES)
    class_data.ensure(lines.append)
    class_data.ensure(lines.append)
    assert lines == [f"making Spark's class-data archive in {folder} (a minute, once)"]
    assert sorted(p.name for p in folder.parent.rglob("*")) == [".lock", "0123", "spark.jsa"]


def test_a_failure_is_a_warning_that_names_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs no second start; without the log it is tried again."""
    lines: list[str] = []
    _program(monkeypatch, FAILS)
    class_data.ensure(lines.append)
    class_data.ensure(lines.append)
    log = folder.with_suffix(".log")
    reason = f"{log} has the reason; remove that file to try again"
    assert lines[1:] == [f"warning: without class-data archive Spark starts slowly: {reason}"]
    assert log.read_text() == "no Spark\n"
    log.unlink()
    class_data.ensure(lines.append)
    assert len(lines) == 4


def test_without_a_folder_in_the_cache_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Java, its release, pyspark or a home, Spark starts as it can, without a line."""
    lines: list[str] = []
    java, home = tmp_path / "java", tmp_path / "cache"
    (java / "bin").mkdir(parents=True)
    (java / "bin" / "java").touch(mode=0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(home))
    monkeypatch.setenv("JAVA_HOME", str(java))
    class_data.ensure(lines.append)
    (java / "release").write_text('JAVA_VERSION="17"')
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda _name: None)
        class_data.ensure(lines.append)
    with monkeypatch.context() as patch:
        patch.delenv("HOMEPORT_CACHE_DIR")
        patch.delenv("XDG_CACHE_HOME", raising=False)
        patch.setattr(Path, "home", _homeless)
        class_data.ensure(lines.append)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    class_data.ensure(lines.append)
    assert lines == []
    assert not home.exists()


def _homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_cache_that_others_can_write_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    """And costs nothing else."""
    lines: list[str] = []
    folder.parent.mkdir()
    folder.parent.chmod(0o777)
    class_data.ensure(lines.append)
    (line,) = lines
    assert line.startswith(f"warning: without class-data archive Spark starts slowly: {tmp_path}")
