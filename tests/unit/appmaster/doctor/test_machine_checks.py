"""A machine in order, and one fault at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.appmaster.doctor.finding import Level
from homeport.appmaster.doctor.machine_checks import MachineFacts, check_machine

GOOD = MachineFacts(
    python=(3, 11),
    python_path="/usr/bin/python3",
    java="/usr/bin/java",
    java_text='openjdk version "17.0.12" 2024-07-16',
    packages={"pyspark": "4.3.0", "skein": "0.8.2"},
    yarn="/opt/hadoop/bin/yarn",
    hadoop_conf="/etc/hadoop",
    cache_folder="/cache/homeport",
    cache_fault=None,
    free_mb=5000,
    native_fault=None,
)


def test_a_machine_in_order() -> None:
    """All seven checks say ok."""
    found = list(check_machine(GOOD, needs_java=True, needs_yarn=True))
    assert {f.level for f in found} == {Level.OK}
    assert {f.check for f in found} == {
        "machine.python",
        "machine.packages",
        "machine.native-input",
        "machine.java",
        "machine.hadoop-client",
        "machine.hadoop-configuration",
        "machine.cache",
    }


@pytest.mark.parametrize(
    ("fault", "check", "level"),
    [
        ({"python": (3, 9)}, "machine.python", Level.ERROR),
        ({"packages": {"skein": None}}, "machine.packages", Level.ERROR),
        ({"java": None}, "machine.java", Level.ERROR),
        ({"java_text": 'java version "1.8.0_402"'}, "machine.java", Level.ERROR),
        ({"java_text": "no such file"}, "machine.java", Level.ERROR),
        ({"yarn": None}, "machine.hadoop-client", Level.ERROR),
        ({"hadoop_conf": None}, "machine.hadoop-configuration", Level.ERROR),
        ({"cache_fault": "Permission denied"}, "machine.cache", Level.ERROR),
        ({"free_mb": 10}, "machine.cache", Level.WARNING),
        ({"native_fault": "no library"}, "machine.native-input", Level.WARNING),
    ],
)
def test_one_fault(fault: dict[str, Any], check: str, level: Level) -> None:
    """That check alone finds it, and says what to change."""
    found = check_machine(replace(GOOD, **fault), needs_java=True, needs_yarn=True)
    bad = [f for f in found if f.level is not Level.OK]
    assert [(f.check, f.level) for f in bad] == [(check, level)]
    assert bad[0].remedy


def test_java_is_a_wish_where_nothing_needs_it() -> None:
    """It is a warning, and the Hadoop client is not looked for."""
    found = check_machine(replace(GOOD, java=None, yarn=None), needs_java=False, needs_yarn=False)
    assert [f.check for f in found if f.level is Level.WARNING] == ["machine.java"]
