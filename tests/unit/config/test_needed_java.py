"""The line of a machine without Java: what is missing, and how to get it; Java's versions."""

from __future__ import annotations

import pytest

from homeport.config.needed_java import java_major, no_java


@pytest.mark.parametrize("java_home", [None, ""])
def test_a_machine_without_java_gets_the_command_that_installs_it(java_home: str | None) -> None:
    """A JAVA_HOME that is not set, or empty, is not at fault."""
    assert no_java(java_home) == (
        "this machine lacks Java 17; install what is missing (Debian, Ubuntu: sudo apt-get "
        "install openjdk-17-jre-headless) and run this again"
    )


def test_a_java_home_without_java_is_at_fault() -> None:
    """The line asks for another value; PATH is not looked at."""
    assert no_java("/nowhere") == (
        "JAVA_HOME=/nowhere has no bin/java; set it to a JDK 17 or newer, or unset it to use the "
        "java on PATH"
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "17-ea"', 17),
        ("no java here", None),
    ],
)
def test_main_version(text: str, version: int | None) -> None:
    """Old versions count behind the 1, new ones in front."""
    assert java_major(text) == version
