"""``homeport upgrade``: what is refused, what would happen, what is shown."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from homeport.appmaster.cli.upgrade_command import (
    Progress,
    order_back,
    package_name,
    plan,
    require_free,
    require_upgradable,
    zipped,
)
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradePhase,
    UpgradeState,
)

NEW, OLD = "ab" * 32, "cd" * 32
ORDER = UpgradeOrder("u", "app", NEW, 2_000, by="ann")
STATE = UpgradeState("u", "app", NEW, OLD, 2_000)
DONE = replace(STATE, phase=UpgradePhase.DONE)
S0 = ProcessorId("0-0")
JOB = {"job.name": "j", "job.default.system": "kafka"}


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"task.pipeline.sql": "SELECT 1", "task.pipeline.output": "kafka.o"}, "no code of its"),
        ({"job.systemstreampartition.grouper.factory": "own:Grouper"}, "job's own grouper"),
        ({"task.name.grouper.factory": "own:Grouper"}, "task.name.grouper.factory"),
        ({"cluster-manager.container.retry.count": "0"}, "nothing go back"),
    ],
)
def test_some_jobs_cannot_be_upgraded(values: dict[str, str], what: str) -> None:
    """Each is named, with what to do instead."""
    task = {} if "task.pipeline.sql" in values else {"task.class": "m:C"}
    require_upgradable(Config({**JOB, "task.class": "m:C"}))
    with pytest.raises(ConfigError, match=what):
        require_upgradable(Config({**JOB, **task, **values}))


@pytest.mark.parametrize(
    ("state", "order", "what"),
    [
        (STATE, ORDER, "another upgrade is under way"),
        (None, ORDER, "another upgrade was ordered"),
        (replace(DONE, id="before"), ORDER, "another upgrade was ordered"),
        (DONE, ORDER, "the job runs this package"),
    ],
)
def test_one_upgrade_at_a_time(
    state: UpgradeState | None, order: UpgradeOrder | None, what: str
) -> None:
    """And none to what runs already."""
    with pytest.raises(ConfigError, match=what):
        require_free(state, order, NEW)


def test_another_package_is_free_to_come() -> None:
    """After one that is over, or none."""
    require_free(None, None, NEW)
    require_free(DONE, ORDER, OLD)
    require_free(replace(DONE, phase=UpgradePhase.GONE_BACK), ORDER, NEW)


def test_an_upgrade_is_taken_back_once() -> None:
    """Under way, done, or not begun yet."""
    back = replace(ORDER, direction=UpgradeDirection.BACK, by="")
    for state in (STATE, DONE, None, replace(DONE, id="before")):
        assert order_back(state, ORDER) == back
    with pytest.raises(ConfigError, match="there was no upgrade"):
        order_back(None, None)
    with pytest.raises(ConfigError, match="taken back already"):
        order_back(STATE, back)
    with pytest.raises(ConfigError, match="the upgrade is gone-back"):
        order_back(replace(DONE, phase=UpgradePhase.GONE_BACK), ORDER)


def test_a_package_is_one_zip(tmp_path: Path) -> None:
    """Equal folders are equal bytes; a zip stays as it is."""
    names = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "m.py").write_text("A = 1\n")
        names.append(package_name(zipped(folder)))
    assert names[0] == names[1]
    archive = tmp_path / "p.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("m.py", "A = 1\n")
    assert zipped(archive) == archive.read_bytes()


def row(processor: str, replica_of: str | None, **facts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A container of the status."""
    known = {"processor_id": processor, "replica_of": replica_of, "phase": "running"}
    return {**known, "is_temporary": False, **facts}


def test_a_plan_has_the_order_and_the_least_time() -> None:
    """Of those that have not finished; a temporary standby is none."""
    rows = [
        row("1", None),
        row("0", None),
        row("0-0", "0"),
        row("2", None, phase="finished"),
        row("1-warm", "1", is_temporary=True),
    ]
    assert plan(ORDER, {"containers": rows}) == [
        "package abababababab: classes checked",
        "order: 0-0, 0, 1",
        "at least 6 s, as each is watched for 2 s",
    ]


def test_it_is_followed_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Each step once; what it waits for, now and then, where that changes."""
    progress = Progress(1, ORDER)
    assert not progress.is_over(replace(STATE, given=(S0,), current=S0))
    for _ in range(8):
        progress.waits(lambda: "a reason")
    progress.waits(lambda: "not looked at")
    assert progress.is_over(replace(DONE, given=(S0,)))
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "upgrade to package abababababab from cdcdcdcdcdcd",
        "0-0: gets the package (1 of 1)",
        "0-0: runs the package",
    ]
    assert said.err.splitlines() == ["waits: a reason"]


def test_one_that_is_taken_back_is_not_over_while_its_record_says_done() -> None:
    """The driver has not read the order yet."""
    progress = Progress(1, replace(ORDER, direction=UpgradeDirection.BACK))
    assert not progress.is_over(DONE)
    assert progress.is_over(replace(DONE, phase=UpgradePhase.GONE_BACK))
