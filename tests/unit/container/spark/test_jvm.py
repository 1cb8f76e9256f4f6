"""The command of Spark's JVM: what the set-up found, or Spark's own script."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from homeport.container.spark.jvm import is_relative, jvm_command, options_file

HOME = Path("/none/pyspark")
OPTIONS = Path("/w/java.options")
PROPERTIES = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": "-XX:A -Dk='a b'"}
SCRIPT = [str(HOME / "bin" / "spark-submit")]


@pytest.fixture(name="java")
def _java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that the set-up has found, with the command written down."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    folder = tmp_path / "share" / "homeport"
    folder.mkdir(parents=True)
    lines = [str(java), "-cp", f"{HOME}/jars/*", "--add-opens=a=B"]
    (folder / "spark.command").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return java


def test_the_command_of_the_set_up_is_used_with_the_jobs_options(java: Path) -> None:
    """Memory and options of this start follow the arguments that are always the same."""
    assert jvm_command(HOME, PROPERTIES, OPTIONS) == [
        *[str(java), "-cp", f"{HOME}/jars/*", "--add-opens=a=B"],
        *["-Xmx512m", "@/w/java.options", "org.apache.spark.deploy.SparkSubmit"],
    ]
    assert options_file(PROPERTIES) == '"-XX:A"\n"-Dk=a b"\n'


def test_without_a_set_up_the_script_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment that was made otherwise works too."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert jvm_command(HOME, PROPERTIES, OPTIONS) == SCRIPT


def test_a_java_that_has_gone_is_not_used(java: Path) -> None:
    """The script looks for another one."""
    java.unlink()
    assert jvm_command(HOME, PROPERTIES, OPTIONS) == SCRIPT


@pytest.mark.usefixtures("java")
def test_an_environment_that_was_moved_is_started_by_its_script() -> None:
    """The class path that the set-up found would lead to nothing."""
    moved = Path("/moved/pyspark")
    assert jvm_command(moved, PROPERTIES, OPTIONS) == [str(moved / "bin" / "spark-submit")]


def test_only_the_java_of_the_environment_is_used(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However its folder is spelt; another one is the script's to start."""
    alias = tmp_path / "alias"
    alias.symlink_to(java.parent.parent)
    monkeypatch.setenv("JAVA_HOME", str(alias))
    assert jvm_command(HOME, PROPERTIES, OPTIONS)[0] == str(java)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "other"))
    assert jvm_command(HOME, PROPERTIES, OPTIONS) == SCRIPT


@pytest.mark.parametrize(
    "key",
    [
        "spark.driver.defaultJavaOptions",
        "spark.driver.extraClassPath",
        "spark.driver.extraLibraryPath",
    ],
)
@pytest.mark.usefixtures("java")
def test_options_that_only_the_script_heeds_need_the_script(key: str) -> None:
    """A class path of the job's own, for one."""
    assert jvm_command(HOME, PROPERTIES | {key: "x"}, OPTIONS) == SCRIPT


def test_files_of_configuration_are_read_by_the_script(java: Path) -> None:
    """Which an installation of Spark may have."""
    home = java.parents[2] / "pyspark"
    (home / "conf").mkdir(parents=True)
    written = java.parents[2] / "share" / "homeport" / "spark.command"
    written.write_text(f"{java}\n-cp\n{home}/jars/*\n", encoding="utf-8")
    script = [str(home / "bin" / "spark-submit")]
    assert jvm_command(home, PROPERTIES, OPTIONS) == script
    (home / "conf").rmdir()
    assert jvm_command(home, PROPERTIES, OPTIONS) != script


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


@pytest.fixture(name="travelling")
def _travelling(tmp_path: Path) -> Path:
    """The folder of a command that travels."""
    lines = ["java", "-cp", "jars/a.jar:jars/b.jar", "--add-opens=a=B"]
    (tmp_path / "spark.command").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_a_command_that_travels_takes_the_java_of_the_host(
    java: Path, travelling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever Spark is, as its class path is relative to that: the JVM starts there."""
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    command = jvm_command(HOME, PROPERTIES, OPTIONS, travelling)
    assert command == [
        *[str(java), "-cp", "jars/a.jar:jars/b.jar", "--add-opens=a=B"],
        *["-Xmx512m", "@/w/java.options", "org.apache.spark.deploy.SparkSubmit"],
    ]
    assert is_relative(command)
    assert not is_relative(jvm_command(HOME, PROPERTIES, OPTIONS))
    assert not is_relative(SCRIPT)


def test_where_a_host_has_no_java_the_script_says_so(
    travelling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does where nothing was written down."""
    monkeypatch.setenv("JAVA_HOME", "/none")
    assert jvm_command(HOME, PROPERTIES, OPTIONS, travelling) == SCRIPT
