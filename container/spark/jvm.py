"""The command that starts Spark's JVM, and the class-data archive that lets it start fast.

Spark's own script starts a JVM to find out how to start the other one, and waits for it. The result
is the same each time, apart from the job's settings, so ``class_data`` writes it to a file, for a
clone and for an environment that travels. The command has only the name of Java, and a class path
relative to Spark's folder. The JVM compares the class path as written, so the archive fits wherever
the environment is unpacked. If Java is another one, the JVM itself ignores the archive.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from homeport.config.declarations.all_keys import TASK_SPARK_CONF
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.needed_java import no_java
from homeport.job_coordinator.own_folders import cache_folder
from homeport.job_coordinator.parent_death import run_child

# Serial collector, first compiler: several times less processor time at a start. The archive is
# bound to the collector.
COLLECTOR = "-XX:+UseSerialGC"
JVM_FLAGS = f"{COLLECTOR} -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
# For a JVM that stays. With Java's own thresholds the second compiler doubles the processor time of
# the start. With these it compiles the code that runs once per row, and hardly more: parsing takes
# less than half as long, and a start takes a tenth longer.
# Arrow's checks of each value stay, though they cost a tenth of a row: Spark has code that reads a
# null without a look, and would go on with any number.
COMPILER_FLAGS = (
    "-XX:TieredStopAtLevel=4 -XX:Tier3InvocationThreshold=400 -XX:Tier3MinInvocationThreshold=200 "
    "-XX:Tier3CompileThreshold=4000 -XX:Tier4InvocationThreshold=200000 "
    "-XX:Tier4MinInvocationThreshold=100000 -XX:Tier4CompileThreshold=400000 "
    "-XX:Tier4BackEdgeThreshold=400000"
)

# By default it is a part of the host's memory: a start would fill hundreds of MB before its first
# collections.
FIRST_HEAP = "-Xms64m"

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_HEADING = "Error occurred during initialization of VM"
_LIMIT_S = 30.0

ARCHIVE_NAME = "spark.jsa"
COMMAND_NAME = "spark.command"
PORTABLE_JAVA = "java"
"""The first line of a command: the Java of the host."""

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})
_OTHER_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
_OPTIONS_OF_SHELLS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_SCRIPTS_ALONE = frozenset(
    {
        "spark.driver.defaultJavaOptions",
        "spark.driver.extraClassPath",
        "spark.driver.extraLibraryPath",
    }
)
"""Properties of a job's JVM that only Spark's scripts apply."""


def environments_folder() -> Path:
    """Return the folder that ``homeport pack`` gives an environment; it may not exist."""
    return Path(sys.prefix) / "share" / "homeport"


def made_folder() -> Path:
    """Return the folder of this environment's archive and command; they may not exist.

    An environment that has none of its own has a folder in the cache, for its Java and its jars.
    """
    own = environments_folder()
    if (own / COMMAND_NAME).is_file():
        return own
    try:
        home, java = spark_and_java()
        release = (Path(java).resolve().parents[1] / "release").read_bytes()
        cache = cache_folder(os.environ)
    except (HomeportError, OSError, RuntimeError):  # the last: this user has no home
        return own
    digest = hashlib.sha256(release)
    for jar in sorted((home / "jars").glob("*.jar")):
        facts = jar.stat()
        digest.update(f"{jar.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return cache / "spark" / digest.hexdigest()[:16]


def archive_path(made: Path | None = None) -> Path | None:
    """Return the class-data archive in that folder, by default this environment's; or None."""
    return _existing((made or made_folder()) / ARCHIVE_NAME)


def lasting_flags(own: str) -> str:
    """Return the flags of a JVM that stays; the job's ``own`` come after them.

    A JVM takes only one collector: without ours where the job names one; the archive is not used.
    """
    flags = f"{JVM_FLAGS} {COMPILER_FLAGS} {FIRST_HEAP}"
    return flags.replace(f"{COLLECTOR} ", "") if _OTHER_COLLECTOR.search(own) else flags


def options_file(properties: Mapping[str, str]) -> str:
    """Return the JVM's own options as text of a file, for Java's argument ``@path``.

    An option may contain a secret, and everybody on the machine can read a command line.
    """
    own = shlex.split(properties[JAVA_OPTIONS])
    return "".join(f'"{option.translate(_ESCAPED)}"\n' for option in own)


def jvm_command(
    home: Path, properties: Mapping[str, str], options: Path, made: Path | None = None
) -> list[str]:
    """Return the command for the JVM of the Spark in ``home``; append Spark's own options.

    It is the command in the folder ``made``, by default this environment's. It is Spark's script if
    there is no command or no Java, or if job or installation set what only the script applies.
    ``options``: the path of ``options_file``. The script cannot read it, and puts the options on
    its command line.
    """
    found = _existing((made or made_folder()) / COMMAND_NAME)
    is_set_up = (home / "conf").exists()
    if found is not None and not _SCRIPTS_ALONE & properties.keys() and not is_set_up:
        given, *arguments = found.read_text(encoding="utf-8").splitlines()
        jars = arguments[arguments.index("-cp") + 1].split(":")
        # The command may still be that of another pyspark, whose jars do not exist.
        fits = given == PORTABLE_JAVA and all((home / jar).exists() for jar in jars)
        java = java_of_host() if fits else None
        if java is not None:
            memory = f"-Xmx{properties['spark.driver.memory']}"
            return [java, *arguments, memory, f"@{options}", _MAIN_CLASS]
    return [str(home / "bin" / "spark-submit")]


def is_relative(command: Sequence[str]) -> bool:
    """Return whether the command must start in Spark's folder, for its relative class path."""
    return "-cp" in command and not command[command.index("-cp") + 1].startswith("/")


def java_of_host() -> str | None:
    """Return the Java that JAVA_HOME names, else the one on PATH; None where there is none."""
    named = os.environ.get("JAVA_HOME")
    return shutil.which(f"{named}/bin/java" if named else "java")


def spark_and_java() -> tuple[Path, str]:
    """Return the folder of pyspark and the host's Java; HomeportError where one is missing."""
    spec, java = importlib.util.find_spec("pyspark"), java_of_host()
    if spec is None or not spec.submodule_search_locations:
        raise HomeportError("pyspark is missing: pip install homeport brings it")
    if java is None:
        raise HomeportError(no_java(os.environ.get("JAVA_HOME")))
    return Path(spec.submodule_search_locations[0]), java


def require_taken(own: str) -> None:
    """Require that a JVM of this machine starts with the job's own options beside ours.

    A machine without Java cannot check it. The options reach the JVM by a file, since one may be a
    secret.

    Raises:
        ConfigError: it does not start; the line has the JVM's own reason.
    """
    java = java_of_host()
    try:
        shlex.split(own)
    except ValueError as error:
        raise _refusal(own, str(error)) from None
    if java is None:
        return
    with tempfile.NamedTemporaryFile("w", prefix="homeport-java-", encoding="utf-8") as options:
        options.write(options_file({JAVA_OPTIONS: f"{lasting_flags(own)} {own}"}))
        options.flush()
        command = [java, f"@{options.name}", "-version"]
        # The containers do not have the options of this shell.
        environment = {name: v for name, v in os.environ.items() if name not in _OPTIONS_OF_SHELLS}
        done = run_child(command, _LIMIT_S, environment=environment)
    if done.returncode != 0:
        # Its standard output has more lines; the reason follows a heading.
        said = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
        reasons = [line for line in said if line and line != _HEADING]
        raise _refusal(own, reasons[0] if reasons else f"exit code {done.returncode}")


def _refusal(own: str, reason: str) -> ConfigError:
    rule = f"Java must take these options ({reason.removeprefix('Error: ')})"
    return ConfigError(TASK_SPARK_CONF.named(JAVA_OPTIONS), own, rule, "correct them")


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
