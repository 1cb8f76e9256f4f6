"""What ``homeport clean`` says of what it finds, and that it goes on past what it cannot remove."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from another_user import open_folder, unprivileged

from homeport.cli.host.job_on_host import job_folders_of, note_places
from homeport.cli.host.sweep import Sweep
from homeport.cli.main import run
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig
from homeport.container.storage.cleaner import Limit, judge_by
from homeport.job_coordinator.model.ids import Host

DAY_MS = 86_400_000


def _sweep(*, is_applied: bool) -> Sweep:
    limit = Limit(7 * DAY_MS, time.time_ns() // 1_000_000)
    return Sweep("mine-1", lambda: judge_by(dict, limit), limit, is_applied=is_applied)


def _old(folder: Path, name: str, size: int = 100_000) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    (path / "000008.sst").write_bytes(b"x" * size)
    month_ago = time.time() - 30 * 86_400
    os.utime(path / "000008.sst", (month_ago, month_ago))
    return path


def test_a_directory_that_cannot_be_removed_does_not_keep_the_others(tmp_path: Path) -> None:
    """R38, failure on one: it is reported, the rest goes, and only what is gone counts as freed."""
    with open_folder() as folder:
        _old(folder, "a/Partition_0").chmod(0o755)
        second = _old(folder, "b/Partition_0")
        if os.geteuid() == 0:
            for path in (second, second / "000008.sst", second.parent):
                os.chown(path, 65534, 65534)
        else:
            (folder / "a" / "Partition_0").chmod(0o555)
        sweep = _sweep(is_applied=True)
        with unprivileged():
            first, other = map(str, sweep.outcomes(folder))
        assert first.startswith("a/Partition_0: not removed: ")
        assert other.startswith("b/Partition_0: removed: the job has no such store")
        assert (sweep.faults, second.exists()) == (1, False)
        *stores, freed = sweep.summary()
        assert [line.split(":")[0] for line in stores] == ["mine-1/a", "mine-1/b"]
        assert freed.startswith("freed 10")  # and the lock's block
    assert tmp_path.is_dir()


def test_a_dry_run_prints_the_space_it_would_free(tmp_path: Path) -> None:
    """A table that two directories share is listed once; nothing is touched."""
    first, second = _old(tmp_path, "a/Partition_0"), tmp_path / "a" / "Partition_0-1700000000000-1"
    second.mkdir()
    (second / "000008.sst").hardlink_to(first / "000008.sst")
    sweep = _sweep(is_applied=False)
    rows = [outcome.shown() for outcome in sweep.outcomes(tmp_path)]
    assert [row.outcome for row in rows] == ["would be removed"] * 2
    assert list(sweep.summary())[-1] == "would free 100.0 KB; --apply removes"
    assert first.is_dir()


@pytest.mark.parametrize("text", ["7", "1w", ""])
def test_an_age_without_a_unit_is_refused(text: str, tmp_path: Path) -> None:
    """Before any request."""
    file = tmp_path / "mine.properties"
    file.write_text("job.name=mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="a whole number with a unit"):
        run(["clean", f"--config-path={file}", "--older-than", text])


def test_a_folder_without_the_jobs_own_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job's own folder in place of the one above it is refused: all would seem clean."""
    above, own = tmp_path / "stores", tmp_path / "stores" / "mine-1"
    own.mkdir(parents=True)
    job = JobConfig.of(Config({"job.name": "mine", "job.default.system": "kafka"}))
    note_places("a test", Host("nm1"), job_folders_of(job, [above, tmp_path]))
    absent = tmp_path / "mine-1"
    assert capsys.readouterr().err.splitlines() == [
        f"from a test, on nm1: {own}, {absent}",
        f"note: {absent} is not there: the job has nothing there",
    ]
    with pytest.raises(ConfigError, match="it is the job's own folder; name the one above it"):
        job_folders_of(job, [own])
