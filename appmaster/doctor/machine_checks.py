"""Checks that this machine can submit a job and run Spark. PURE."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from homeport.appmaster.doctor.finding import Check, Finding
from homeport.config.needed_java import JAVA_PACKAGE, LEAST_JAVA, installed_by, java_major

LEAST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The facts of this machine.

    ``java``, ``yarn``: the paths of the programs; None: not found. ``java_text``: the output of
    ``java -version``. ``packages``: {distribution that homeport needs: its version; None: not
    installed}. ``cache_fault``: why nothing can be written into the cache; None: it can.
    ``native_fault``: why containers of this installation read input in Python; None: natively.
    """

    python: tuple[int, int]
    python_path: str
    java: str | None
    java_text: str
    packages: Mapping[str, str | None]
    yarn: str | None
    hadoop_conf: str | None
    cache_folder: str
    cache_fault: str | None
    free_mb: int
    native_fault: str | None


def check_machine(facts: MachineFacts, *, needs_java: bool, needs_yarn: bool) -> Iterator[Finding]:
    """Check the interpreter, packages, the native library, Java, the Hadoop client and the cache.

    ``needs_java``: Spark or Skein runs here. ``needs_yarn``: jobs are submitted from here.
    """
    version = ".".join(map(str, facts.python))
    least = ".".join(map(str, LEAST_PYTHON))
    python = Check("machine.python", facts.python_path)
    if facts.python < LEAST_PYTHON:
        yield python.error(version, f"use Python {least} or later")
    else:
        yield python.ok(version)
    missing = sorted(name for name, found in facts.packages.items() if found is None)
    packages = Check("machine.packages", facts.python_path)
    if missing:
        yield packages.error(
            f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}"
        )
    else:
        yield packages.ok(f"all {len(facts.packages)} are installed")
    native = Check("machine.native-input", facts.python_path)
    if facts.native_fault is None:
        yield native.ok("input goes into Arrow natively")
    else:
        yield native.warning(
            f"input goes through Python objects, at more CPU: {facts.native_fault}",
            "install a C++ compiler (on Debian g++), then homeport again",
        )
    yield from _java(facts, needs_java=needs_java)
    if needs_yarn:
        yield from _hadoop(facts)
    yield from _cache(facts)


def _java(facts: MachineFacts, *, needs_java: bool) -> Iterator[Finding]:
    java = Check("machine.java", facts.java or "JAVA_HOME and PATH")
    judge = java.error if needs_java else java.warning
    how = installed_by(JAVA_PACKAGE)
    remedy = f"install a JDK {LEAST_JAVA} or later {how}, and let JAVA_HOME name it, or PATH"
    if facts.java is None:
        yield judge("no Java", remedy)
        return
    major = java_major(facts.java_text)
    if major is None or major < LEAST_JAVA:
        shown = "no version that can be read" if major is None else f"Java {major}"
        yield judge(shown, remedy)
    else:
        yield java.ok(f"Java {major}")


def _hadoop(facts: MachineFacts) -> Iterator[Finding]:
    if facts.yarn is None:
        yield Check("machine.hadoop-client", "PATH").error(
            "no yarn command", "add the bin folder of the Hadoop client to PATH"
        )
    else:
        yield Check("machine.hadoop-client", facts.yarn).ok("found")
    if facts.hadoop_conf is None:
        yield Check("machine.hadoop-configuration", "HADOOP_CONF_DIR").error(
            "names no folder with a yarn-site.xml",
            "let it name the folder with the cluster's Hadoop configuration",
        )
    else:
        yield Check("machine.hadoop-configuration", facts.hadoop_conf).ok("has a yarn-site.xml")


_LEAST_FREE_MB = 1024
"""Spark's and Skein's archives, the class data and their copies take some 700 MB."""


def _cache(facts: MachineFacts) -> Iterator[Finding]:
    cache = Check("machine.cache", facts.cache_folder)
    if facts.cache_fault is not None:
        yield cache.error(
            facts.cache_fault, "let HOMEPORT_CACHE_DIR name a folder that this user can write"
        )
    elif facts.free_mb < _LEAST_FREE_MB:
        yield cache.warning(
            f"{facts.free_mb} MB free",
            f"free {_LEAST_FREE_MB} MB, or let HOMEPORT_CACHE_DIR name a folder on another disk",
        )
    else:
        yield cache.ok(f"{facts.free_mb} MB free")
