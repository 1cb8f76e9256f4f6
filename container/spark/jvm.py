"""The command that starts Spark's JVM, and the class-data archive that lets it start fast.

Spark's own script starts a JVM to find out how to start the other, and waits for it. What it finds
is the same each time but for what a job says, so the set-up of the environment writes it down.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

# Serial collector, first compiler: several times less processor time at a start. The archive is
# bound to both.
JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})
_MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
_SCRIPTS_ALONE = frozenset(
    {
        "spark.driver.defaultJavaOptions",
        "spark.driver.extraClassPath",
        "spark.driver.extraLibraryPath",
    }
)
"""What a job may say of its JVM that only Spark's scripts know how to heed."""


def archive_path() -> Path | None:
    """The class-data archive of this environment; None where none was made."""
    return _made("spark.jsa")


def options_file(properties: Mapping[str, str]) -> str:
    """The JVM's own options as Java reads them from a file that is named ``@`` and its path.

    One may hold a secret, and everybody on the machine can read a command line.
    """
    own = shlex.split(properties["spark.driver.extraJavaOptions"])
    return "".join(f'"{option.translate(_ESCAPED)}"\n' for option in own)


def jvm_command(home: Path, properties: Mapping[str, str], options: Path) -> list[str]:
    """What starts the JVM of the Spark in ``home``; Spark's own options follow.

    The command that the set-up found; Spark's script where there is none for this Java and this
    place, or where job or installation ask for what only the script heeds. ``options``: where
    ``options_file`` is. The script knows no such file, and puts the options on its command line.
    """
    found = _made("spark.command")
    if found is not None and not _SCRIPTS_ALONE & properties.keys() and not _is_set_up(home):
        java, *arguments = found.read_text(encoding="utf-8").splitlines()
        if _is_wanted(Path(java)) and any(a.startswith(f"{home}/") for a in arguments):
            memory = f"-Xmx{properties['spark.driver.memory']}"
            return [java, *arguments, memory, f"@{options}", _MAIN_CLASS]
    return [str(home / "bin" / "spark-submit")]


def _made(name: str) -> Path | None:
    path = Path(sys.prefix) / "share" / "homeport" / name
    return path if path.is_file() else None


def _is_wanted(java: Path) -> bool:
    """Whether that Java is there, and the environment names no other."""
    named = os.environ.get("JAVA_HOME")
    wanted = java if not named else Path(named) / "bin" / "java"
    return java.is_file() and wanted.resolve() == java.resolve()


def _is_set_up(home: Path) -> bool:
    """Whether there are files of configuration, which the scripts read."""
    return (home / "conf").exists()
