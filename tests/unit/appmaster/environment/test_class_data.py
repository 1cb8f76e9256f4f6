"""Spark's class-data archive of an environment that travels: when it is made, and when not."""

from __future__ import annotations

import sys
from pathlib import Path

from homeport.appmaster.environment.class_data import HostJava, ensure, own_java
from homeport.appmaster.environment.distributions import Installed

MAKES = "import pathlib, sys; pathlib.Path(sys.argv[1], 'spark.jsa').touch()"
FAILS = "import sys; sys.exit('no Spark')"


def _java(release: str, script: str = MAKES) -> HostJava:
    return HostJava(release, lambda folder: [sys.executable, "-c", script, str(folder)])


def _packages(pyspark: str, homeport: str = "1") -> list[Installed]:
    return [Installed("homeport", "1", {}, homeport), Installed("pyspark", "4", {}, pyspark)]


def test_it_is_made_once_for_a_java_and_a_pyspark(tmp_path: Path) -> None:
    """Another homeport has the same; another Java or pyspark has one of its own."""
    lines: list[str] = []
    made = ensure(tmp_path, _java("17.0.1"), _packages("a"), lines.append)
    assert made is not None
    assert [p.name for p in made.iterdir()] == ["spark.jsa"]
    assert ensure(tmp_path, _java("17.0.1", FAILS), _packages("a", "2"), lines.append) == made
    assert len(lines) == 1
    other = ensure(tmp_path, _java("17.0.2"), _packages("a"), lines.append)
    newer = ensure(tmp_path, _java("17.0.1"), _packages("b"), lines.append)
    assert len({made, other, newer}) == 3


def test_where_it_cannot_be_made_there_is_none(tmp_path: Path) -> None:
    """One line says so, with the log; nothing half made is taken for one later."""
    lines: list[str] = []
    assert ensure(tmp_path, _java("17", FAILS), _packages("a"), lines.append) is None
    log = tmp_path / "class-data.log"
    assert lines[1:] == [
        f"warning: without class-data archive: Spark starts slowly on the hosts: see {log}"
    ]
    assert log.read_text() == "no Spark\n"
    assert list(tmp_path.iterdir()) == [log]
    assert ensure(tmp_path, _java("17"), _packages("a"), lines.append) is not None


def test_the_java_of_this_machine(tmp_path: Path) -> None:
    """JAVA_HOME's, by its file of the release; none where it has no program or no such file."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    environment = {"JAVA_HOME": str(tmp_path), "PATH": ""}
    assert own_java(environment) is None
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    found = own_java(environment)
    assert found is not None
    assert found.release == 'JAVA_VERSION="17.0.1"\n'
    assert own_java({"JAVA_HOME": "/none", "PATH": ""}) is None
