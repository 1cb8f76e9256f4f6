"""What Spark's JVM starts with: its command, or Spark's own script, and the jar of our classes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from homeport.config.errors import HomeportError
from homeport.container.spark import java_classes, jvm
from homeport.container.spark.jvm import is_relative, jvm_command, made_folder, options_file

HOME = Path("/none/pyspark")
OPTIONS = Path("/w/java.options")
PROPERTIES = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": "-XX:A -Dk='a b'"}


def _script(home: Path) -> list[str]:
    return [str(home / "bin" / "spark-submit")]


def _spark(folder: Path) -> Path:
    """A Spark with the jars of the command."""
    (folder / "pyspark" / "jars").mkdir(parents=True)
    for name in ("a.jar", "b.jar"):
        (folder / "pyspark" / "jars" / name).touch()
    return folder / "pyspark"


@pytest.fixture(name="java")
def _java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Java of this host, with the command written down."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(0o755)
    folder = tmp_path / "share" / "homeport"
    folder.mkdir(parents=True)
    lines = ["java", "-cp", "jars/a.jar:jars/b.jar", "--add-opens=a=B"]
    (folder / "spark.command").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    return java


def test_the_command_is_used_with_the_jobs_options(java: Path, tmp_path: Path) -> None:
    """Memory and options of this start follow the arguments that are always the same.

    Its class path is relative to Spark's folder, where the JVM starts. Of another Spark, without
    these jars, it is not used.
    """
    home = _spark(tmp_path)
    command = jvm_command(home, PROPERTIES, OPTIONS)
    assert command == [
        *[str(java), "-cp", "jars/a.jar:jars/b.jar", "--add-opens=a=B"],
        *["-Xmx512m", "@/w/java.options", "org.apache.spark.deploy.SparkSubmit"],
    ]
    assert is_relative(command)
    assert not is_relative(_script(home))
    assert options_file(PROPERTIES) == '"-XX:A"\n"-Dk=a b"\n'
    (home / "jars" / "b.jar").rename(home / "jars" / "b-2.jar")
    assert jvm_command(home, PROPERTIES, OPTIONS) == _script(home)


@pytest.mark.usefixtures("java")
def test_an_environment_without_files_has_a_folder_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For its Java and its jars: of another one there is another folder."""
    own = made_folder()
    assert own == tmp_path / "share" / "homeport"
    (own / "spark.command").unlink()
    assert made_folder() == own, "a Java without a release has none"
    home = _spark(tmp_path)
    monkeypatch.setattr(jvm, "spark_and_java", lambda: (home, str(tmp_path / "java/bin/java")))
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(tmp_path / "cache"))
    found = set()
    for release, jar in (("17.0.1", "a.jar"), ("17.0.2", "a.jar"), ("17.0.2", "c.jar")):
        (tmp_path / "java" / "release").write_text(release)
        (home / "jars" / jar).touch()
        found.add(made_folder())
    assert len(found) == 3
    assert {folder.parent for folder in found} == {tmp_path / "cache" / "spark"}


def test_without_a_set_up_the_script_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment that was made otherwise works too."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert jvm_command(HOME, PROPERTIES, OPTIONS) == _script(HOME)


def test_without_java_the_script_says_so(java: Path, tmp_path: Path) -> None:
    """As it does where nothing was written down."""
    java.unlink()
    home = _spark(tmp_path)
    assert jvm_command(home, PROPERTIES, OPTIONS) == _script(home)


def test_the_command_of_an_older_set_up_is_not_used(java: Path, tmp_path: Path) -> None:
    """It has a Java by its path, which may be another one by now."""
    (tmp_path / "spark.command").write_text(f"{java}\n-cp\n{HOME}/jars/*\n", encoding="utf-8")
    assert jvm_command(HOME, PROPERTIES, OPTIONS, tmp_path) == _script(HOME)


@pytest.mark.parametrize(
    "key",
    [
        "spark.driver.defaultJavaOptions",
        "spark.driver.extraClassPath",
        "spark.driver.extraLibraryPath",
    ],
)
@pytest.mark.usefixtures("java")
def test_options_that_only_the_script_heeds_need_the_script(key: str, tmp_path: Path) -> None:
    """A class path of the job's own, for one."""
    home = _spark(tmp_path)
    assert jvm_command(home, PROPERTIES | {key: "x"}, OPTIONS) == _script(home)


def test_files_of_configuration_are_read_by_the_script(java: Path) -> None:
    """Which an installation of Spark may have."""
    home = _spark(java.parents[2])
    (home / "conf").mkdir(parents=True)
    assert jvm_command(home, PROPERTIES, OPTIONS) == _script(home)
    (home / "conf").rmdir()
    assert jvm_command(home, PROPERTIES, OPTIONS) != _script(home)


def test_options_are_written_as_java_reads_them() -> None:
    """Blanks, quotes, backslashes, line breaks and comment signs reach the JVM as they are."""
    values = {"a": "x y", "b": "C:\\new", "c": "a \"b\" 'c'", "d": "1\n2", "e": "#@", "f": "ü"}
    given = shlex.join(f"-D{name}={value}" for name, value in values.items())
    assert options_file({"spark.driver.extraJavaOptions": given}).splitlines() == [
        '"-Da=x y"',
        r'"-Db=C:\\new"',
        '"-Dc=a \\"b\\" \'c\'"',
        r'"-Dd=1\n2"',
        '"-De=#@"',
        '"-Df=ü"',
    ]


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
    with pytest.raises(HomeportError, match="none has no bin/java"):
        java_classes.make(tmp_path)
    jar = tmp_path / java_classes.jar_name()
    jar.touch()
    assert java_classes.make(tmp_path) == jar
