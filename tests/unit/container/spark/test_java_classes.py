"""The jar of the classes that Spark's JVM runs: when it is made, and what it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.config.errors import HomeportError
from homeport.container.spark import java_classes


def test_other_sources_have_another_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jar of other sources is never taken for theirs."""
    shipped = java_classes.jar_name()
    monkeypatch.setattr(java_classes, "_SOURCES", tmp_path)
    (tmp_path / "A.java").write_text("class A {}")
    first = java_classes.jar_name()
    (tmp_path / "A.java").write_text("final class A {}")
    assert len({shipped, first, java_classes.jar_name()}) == 3


def test_another_pyspark_has_another_jar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes that were compiled against one may not fit the other."""
    names = set()
    for version in ("4.0.0", "4.0.1"):
        monkeypatch.setattr(java_classes, "_pyspark_version", lambda version=version: version)
        names.add(java_classes.jar_name())
    monkeypatch.undo()
    assert len(names | {java_classes.jar_name()}) == 3


def test_a_jar_that_is_there_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Java it is of use too; another one cannot be made."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(HomeportError, match="pyspark or Java is missing"):
        java_classes.make(tmp_path)
    jar = tmp_path / java_classes.jar_name()
    jar.touch()
    assert java_classes.make(tmp_path) == jar
