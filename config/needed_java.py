"""The one line of all commands where a machine has no Java. PURE."""

import re
from collections.abc import Mapping

LEAST_JAVA = 17
JAVA_PACKAGE = f"openjdk-{LEAST_JAVA}-jre-headless"
"""Debian's."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_major(text: str) -> int | None:
    """Return the major version in the output of ``java -version``: 17 for 17.0.1, 8 for 1.8."""
    found = _VERSION.search(text)
    return int(found[1]) if found else None


def installed_by(*packages: str) -> str:
    """Return how the packages are installed, in parentheses."""
    return f"(Debian, Ubuntu: sudo apt-get install {' '.join(packages)})"


def lacking(needed: Mapping[str, str]) -> str:
    """Return a line for a machine without these; ``needed``: {what: its package}, not empty."""
    how = installed_by(*needed.values())
    return (
        f"this machine lacks {'; '.join(needed)}; install what is missing {how} and run this again"
    )


def no_java(java_home: str | None) -> str:
    """Return a line for a machine without Java; ``java_home``: its JAVA_HOME, if it is set."""
    if java_home:
        return (
            f"JAVA_HOME={java_home} has no bin/java; set it to a JDK {LEAST_JAVA} or newer, "
            "or unset it to use the java on PATH"
        )
    return lacking({f"Java {LEAST_JAVA}": JAVA_PACKAGE})
