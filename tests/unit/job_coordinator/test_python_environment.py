"""How a process of a running job has another Python environment: shells stand for the Pythons."""

from __future__ import annotations

import os
import sys
import tarfile
from pathlib import Path

import pytest

from homeport.config.errors import HomeportError, WireError
from homeport.job_coordinator import python_environment as module
from homeport.job_coordinator.model.job_package import ENVIRONMENT_NAME
from homeport.job_coordinator.python_environment import (
    OWN_VARIABLE,
    SUBMITTED_VARIABLE,
    become,
    is_same,
    make_ready,
    own_place,
    place_in,
    variables_for,
    words_for,
)

HOMEPORT = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
ARCHIVE = "hdfs://nn:8020/user/ada/.homeport/environments/homeport-1.tar.gz"


def _shell(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_process_knows_its_environment_and_the_way_back() -> None:
    """The submission's interpreter is that of the first process, through all changes."""
    first = {"A": "1"}
    assert own_place(first) is None
    assert words_for(None, first) == [sys.executable]
    second = variables_for("/e/python", first)
    assert second == {"A": "1", OWN_VARIABLE: "/e/python", SUBMITTED_VARIABLE: sys.executable}
    assert (own_place(second), words_for("/e/python", second)) == ("/e/python", ["/e/python"])
    third = variables_for(None, second | {SUBMITTED_VARIABLE: "/first"})
    assert (own_place(third), words_for(None, third)) == (None, ["/first"])


def test_a_package_names_its_environment(tmp_path: Path) -> None:
    """None: that of the submission. A damaged file is none."""
    assert place_in(tmp_path) is None
    file = tmp_path / ENVIRONMENT_NAME
    file.write_text('{"python": "/e", "code": "' + "a" * 64 + '"}')
    assert place_in(tmp_path) == "/e"
    file.write_text("")
    with pytest.raises(WireError):
        place_in(tmp_path)


def test_archives_are_named_by_their_content() -> None:
    """Interpreters by their path."""
    assert is_same(ARCHIVE, "build/homeport-1.tar.gz")
    assert not is_same(ARCHIVE, "build/homeport-2.tar.gz")
    assert is_same("/e/bin/python", "/e/bin/python")
    assert not is_same("/e/bin/python", "/f/bin/python")


def test_what_does_not_start_is_refused_in_one_line(tmp_path: Path) -> None:
    """Missing, or without homeport; its last line has the reason."""
    make_ready(None, "os", HOMEPORT)
    make_ready(sys.executable, "os", HOMEPORT)
    missing = str(tmp_path / "none")
    with pytest.raises(HomeportError, match=f"^environment {missing}: .*No such file"):
        make_ready(missing, "os", {})
    broken = _shell(tmp_path / "broken", "echo first >&2; echo last >&2; exit 3")
    with pytest.raises(HomeportError, match=f"^environment {broken}: last$"):
        make_ready(broken, "os", {})
    mute = _shell(tmp_path / "mute", "exit 3")
    with pytest.raises(HomeportError, match=f"^environment {mute}: exit code 3$"):
        make_ready(mute, "os", {})


def test_an_environment_that_hangs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In time."""
    monkeypatch.setattr(module, "_START_LIMIT_S", 0.1)
    hangs = _shell(tmp_path / "hangs", "exec sleep 60")
    with pytest.raises(HomeportError, match="has not ended in 0 s"):
        make_ready(hangs, "os", {})


def _packed(folder: Path) -> Path:
    """An archive whose ``start`` is a shell that runs this Python."""
    start = _shell(folder / "tree" / "start", f'exec {sys.executable} "$@"')
    packed = folder / "packed.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(start, "start")
    return packed


def test_an_archive_is_fetched_once_by_the_nodes_own_hadoop(tmp_path: Path) -> None:
    """Into a folder of the application, whole or not at all."""
    packed = _packed(tmp_path)
    fetches = tmp_path / "fetches"
    _shell(tmp_path / "hadoop/bin/hadoop", f'echo "$@" >> {fetches}; cp {packed} "$4"')
    local = tmp_path / "local"
    variables = {
        **HOMEPORT,
        "LOCAL_DIRS": f"{local},/elsewhere",
        "HADOOP_COMMON_HOME": str(tmp_path / "hadoop"),
        "PATH": "/usr/bin:/bin",
    }
    for _ in range(2):
        make_ready(ARCHIVE, "os", variables)
    assert fetches.read_text().startswith(f"fs -get {ARCHIVE} {local}/")
    assert len(fetches.read_text().splitlines()) == 1
    bash, start = words_for(ARCHIVE, variables)
    assert (bash, Path(start).name) == ("/bin/bash", "start")
    assert Path(start).is_relative_to(local)
    assert [path.name for path in Path(start).parent.iterdir()] == ["start"]


def test_an_archive_that_cannot_be_had_is_refused_in_one_line(tmp_path: Path) -> None:
    """No Hadoop, no such file, no place for it."""
    variables = {"LOCAL_DIRS": str(tmp_path / "local"), "PATH": "/usr/bin:/bin"}
    with pytest.raises(HomeportError, match=r"^this host has no hadoop command to fetch"):
        make_ready(ARCHIVE, "os", variables)
    _shell(tmp_path / "hadoop/bin/hadoop", "echo 'no such file' >&2; exit 1")
    variables["HADOOP_HOME"] = str(tmp_path / "hadoop")
    with pytest.raises(HomeportError, match=f"^environment {ARCHIVE}: no such file$"):
        make_ready(ARCHIVE, "os", variables)
    (tmp_path / "file").touch()
    variables["LOCAL_DIRS"] = str(tmp_path / "file")
    with pytest.raises(HomeportError, match="it cannot be unpacked here"):
        make_ready(ARCHIVE, "os", variables)


def test_what_cannot_be_started_changes_nothing(tmp_path: Path) -> None:
    """This process goes on."""
    with pytest.raises(OSError, match="No such file"):
        become(str(tmp_path / "none"), [], {})
