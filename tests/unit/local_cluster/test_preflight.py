"""Java's version as its programs print it."""

from __future__ import annotations

import pytest

from local_cluster.preflight import parse_java_version


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
    assert parse_java_version(text) == version
