"""What a node answers, and what is made of it. The script itself runs here, by a real shell."""

from __future__ import annotations

import os
import platform
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.appmaster.doctor.finding import Level
from homeport.appmaster.doctor.node_checks import PROBE_SCRIPT, NodeNeeds, answer_of, check_node

NEEDS = NodeNeeds("/usr/bin/python3", has_pipeline=True, has_state=True, free_mb=100)
GOOD = {
    "base": "/data/state",
    "exists": "1",
    "mode": "1777",
    "writable": "1",
    "free_kb": str(2048 * 1024),
    "python": "/usr/bin/python3",
    "python_version": "3.11",
    "homeport": "1",
    "java": "java",
    "java_version": 'openjdk version "17.0.12"',
    "end": "1",
}


def probed(**variables: str) -> dict[str, str]:
    """What the script prints in a shell with these variables alone, and PATH."""
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        ["/bin/bash", "-c", PROBE_SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answer = answer_of(done.stdout)
    assert answer is not None
    return answer


def test_a_node_in_order() -> None:
    """All three checks say ok."""
    found = list(check_node("nm1", GOOD, NEEDS))
    assert {f.check for f in found} == {"node.state", "node.python", "node.java"}
    assert {f.level for f in found} == {Level.OK}


@pytest.mark.parametrize(
    ("fault", "check", "level"),
    [
        ({"base": ""}, "node.state", Level.ERROR),
        ({"writable": ""}, "node.state", Level.ERROR),
        ({"writable": "", "exists": ""}, "node.state", Level.ERROR),
        ({"mode": "777"}, "node.state", Level.ERROR),
        ({"mode": "2775"}, "node.state", Level.ERROR),
        ({"mode": "777", "own_group": "1"}, "node.state", Level.ERROR),
        ({"free_kb": "1024"}, "node.state", Level.WARNING),
        ({"free_kb": "?"}, "node.state", Level.WARNING),
        ({"python_version": ""}, "node.python", Level.ERROR),
        ({"homeport": ""}, "node.python", Level.ERROR),
        ({"java_version": ""}, "node.java", Level.ERROR),
        ({"java_version": 'java version "1.8.0_402"'}, "node.java", Level.ERROR),
    ],
)
def test_one_fault(fault: dict[str, str], check: str, level: Level) -> None:
    """That check alone finds it, and says what to change."""
    bad = [f for f in check_node("nm1", GOOD | fault, NEEDS) if f.level is not Level.OK]
    assert [(f.check, f.level) for f in bad] == [(check, level)]
    assert bad[0].remedy


def test_what_a_job_does_not_need_is_not_looked_at() -> None:
    """Without state and pipeline, Python alone is."""
    needs = NodeNeeds(None, has_pipeline=False, has_state=False, free_mb=1)
    found = list(check_node("nm1", {"python": "python3", "python_version": "3.11"}, needs))
    assert [(f.check, f.level) for f in found] == [("node.python", Level.OK)]


def test_a_node_without_an_answer() -> None:
    """It is unknown, not broken; a cut answer is none."""
    assert [f.level for f in check_node("nm1", None, NEEDS)] == [Level.UNKNOWN]
    assert answer_of("base=/data\nwritable=1\n") is None


@pytest.mark.parametrize("given", [{"mode": "775", "own_group": "1"}, {"mode": "1775"}])
def test_a_group_may_write_where_it_is_the_users_own_or_cannot_exchange(
    given: dict[str, str],
) -> None:
    """As the rule of the state's folders has it."""
    assert all(f.level is Level.OK for f in check_node("nm1", GOOD | given, NEEDS))


def test_the_script_sees_a_folder_that_can_be_written(tmp_path: Path) -> None:
    """It leaves no file behind."""
    answer = probed(LOGGED_STORE_BASE_DIR=str(tmp_path), HOMEPORT_PROBED_PYTHON=sys.executable)
    assert answer["base"] == str(tmp_path)
    assert (answer["variable"], answer["exists"], answer["writable"]) == ("1", "1", "1")
    assert int(answer["free_kb"]) > 0
    assert answer.get("own_group") == (
        "1" if tmp_path.group() == pwd.getpwuid(os.geteuid()).pw_name else None
    )
    assert int(answer["mode"], 8) == tmp_path.stat().st_mode & 0o7777
    own = ".".join(platform.python_version_tuple()[:2])
    assert (answer["python_version"], answer["homeport"]) == (own, "1")
    assert list(tmp_path.iterdir()) == []


def test_the_script_takes_the_job_s_folder_and_one_that_can_be_made(tmp_path: Path) -> None:
    """The folder above it is tried; none is made."""
    answer = probed(HOMEPORT_LOGGED_STORE_BASE_DIR=str(tmp_path / "a" / "b"))
    assert (answer["variable"], answer.get("exists"), answer["writable"]) == ("", None, "1")
    assert list(tmp_path.iterdir()) == []


def test_the_script_sees_a_file_in_the_way_and_what_is_missing(tmp_path: Path) -> None:
    """What cannot be run has an empty version."""
    (tmp_path / "file").touch()
    answer = probed(
        LOGGED_STORE_BASE_DIR=str(tmp_path / "file"),
        HOMEPORT_PROBED_PYTHON="/no/such/python",
        JAVA_HOME="/no/such/java",
    )
    assert answer.get("writable") is None
    assert (answer["python_version"], answer["homeport"], answer["java_version"]) == ("", "", "")


def test_the_script_says_that_no_folder_is_named() -> None:
    """The state would be in the container's own folder."""
    assert probed()["base"] == ""
