"""The demo under faults: a whole run, from nothing to the judged history."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "scripts" / "demo"
LIMIT_S = 1500
SEED = 1


def _passes(*arguments: str) -> str:
    """The demo holds all that it promises; what it printed."""
    done = subprocess.run(
        [str(DEMO), *arguments],
        env={**os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "PASSED"
    return done.stdout


def test_a_job_survives_a_schedule_of_faults() -> None:
    """Ten faults and more, then calm: every plane is right and the history is sound."""
    assert f"seed {SEED}" in _passes("--chaos", str(SEED))


def test_mixed_containers_survive_a_schedule_of_faults() -> None:
    """The same faults, some of which send tasks to the processes that run."""
    assert f"seed {SEED}" in _passes("--chaos", str(SEED), "--mixed")


def test_standalone_processors_survive_a_schedule_of_faults() -> None:
    """Processors die, stand still, come and go, and ZooKeeper is away: every plane is right."""
    printed = _passes("--standalone", "--chaos", str(SEED), "--form", "batch-task")
    assert "fault  8 at" in printed


def test_two_jobs_survive_twenty_kills() -> None:
    """Containers and launchers: every plane is right, and each record counts once."""
    printed = _passes("--kill-loop", str(SEED))
    assert f"seed {SEED}" in printed
    assert "fault 20 at" in printed


def test_a_job_survives_the_loss_of_a_host() -> None:
    """The lost active goes on where its standby was, and a timeline shows how."""
    printed = _passes("--fail-host")
    for moment in ("the lease has run out", "the standby has stopped", "first output committed"):
        assert moment in printed


def test_a_job_of_mixed_containers_survives_the_loss_of_a_host() -> None:
    """Its tasks go on in the processes that run, where their standbys were."""
    printed = _passes("--fail-host", "--mixed")
    assert "no process of a container of the other hosts ended or began" in printed
    assert "to committed output of all" in printed


def test_a_job_of_mixed_containers_changes_their_number() -> None:
    """Each standby follows its task, and none that stays has a new process."""
    assert "to 5 containers: none that stays has a new process" in _passes("--rescale", "--mixed")


def test_an_operator_moves_and_upgrades_a_job() -> None:
    """By homeport's commands while input comes: the pause of each container is printed."""
    table = _passes("--moves").partition("From the last transaction before")[2]
    for command in ("warm move", "drain", "upgrade"):
        assert f"\n  {command} " in table
