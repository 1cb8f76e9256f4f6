"""What ``homeport clean --all-jobs`` makes of folders of living, deleted and unknown jobs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from left_stores import store_in

from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from homeport.cli.host import host_clean
from homeport.cli.host.host_clean import HostClean
from homeport.cli.main import run
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.container.progress.host_directories import HostRole, Owner
from homeport.container.progress.store_meta import META_FILE
from homeport.container.storage.cleaner import Limit
from homeport.job_coordinator.kafka.deleted_jobs import DeletedJob, DeletedJobs
from homeport.job_coordinator.model.ids import Host

DAY_MS = 86_400_000
HOST = Config({"job.default.system": "kafka", "systems.kafka.consumer.bootstrap.servers": "h:1"})
DELETED = DeletedJob("gone", "1", ("id-gone",), (), ("kafka.log",), ("nm1", "nm2"))


@pytest.fixture
def cleaned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The Kafka has a stream of job ``lives``, whose only task is at home on nm1."""
    found: list[tuple[str, str]] = []
    topics = frozenset({"__samza_coordinator_lives_1", "__samza_coordinator_away_1"})
    monkeypatch.setattr(HostClean, "_topics", topics)
    monkeypatch.setattr(HostClean, "_deleted", {"gone-1": DELETED})
    monkeypatch.setattr(DeletedJobs, "__init__", lambda *_: None)
    monkeypatch.setattr(DeletedJobs, "cleaned", lambda _, *what: found.append(what))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)

    @contextlib.contextmanager
    def recorded_job(config: Config) -> Iterator[object]:
        if config["job.name"] == "away":
            raise UnavailableError("its stream cannot be read")
        role = HostRole.ACTIVE
        owner = Owner("counts", None, role, None)  # type: ignore[arg-type]  # not looked at
        yield SimpleNamespace(
            tree=contextlib.nullcontext,
            owners=lambda *_: {PurePosixPath("counts/Partition_0"): owner},
            view=SimpleNamespace(given=config, stream=None, recorded_config=Config),
        )

    monkeypatch.setattr(host_clean, "recorded_job", recorded_job)
    monkeypatch.setattr(host_clean, "is_standalone", lambda *_: False)
    return found


def swept(base: Path, *, is_applied: bool, has_orphans: bool = False) -> dict[str, str]:
    """{folder and directory: what became of it, and why}, as nm1."""
    limit = Limit(7 * DAY_MS, time.time_ns() // 1_000_000)
    run = HostClean(HOST, "nm1", limit, is_applied=is_applied, has_orphans=has_orphans)
    return {
        item.folder: f"{item.shown().outcome}: {item.shown().reason}" for item in run.outcomes(base)
    }


def test_each_folder_is_judged_by_what_is_known_of_its_job(
    tmp_path: Path, cleaned: list[tuple[str, str]]
) -> None:
    """Alive, deleted, unreadable, unknown, none: only what was deleted goes."""
    alive, gone = store_in(tmp_path, "lives-1", "id-1"), store_in(tmp_path, "gone-1", "id-gone")
    kept = [
        alive,
        store_in(tmp_path, "away-1", "id-2"),
        store_in(tmp_path, "strange-1", "id-3"),
        store_in(tmp_path, "none", "id-4"),
    ]
    planned = swept(tmp_path, is_applied=False)
    assert gone.exists()
    assert planned == {
        "away-1": "kept: its stream cannot be read",
        "gone-1": "would be removed: the job was deleted",
        "lives-1": "kept: the job's own: active on this host",
        "none": "kept: no job has a folder of that name",
        "strange-1": "kept: no coordinator stream of it at h:1, nor a record that it was deleted; "
        "--orphans judges it, if that is its Kafka",
    }
    assert cleaned == []
    done = swept(tmp_path, is_applied=True)
    assert done == {**planned, "gone-1": "removed: the job was deleted"}
    assert not (tmp_path / "gone-1").exists()
    assert all(path.exists() for path in kept)
    assert cleaned == [("gone-1", "nm1")]


def test_a_folder_that_cannot_be_read_keeps_no_other_one(
    tmp_path: Path, cleaned: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of another user, whose folders are for that user alone."""
    store_in(tmp_path, "another-1", "id-1")
    store_in(tmp_path, "gone-1", "id-gone")

    def walk(folder: Path, onerror: Callable[[OSError], None]) -> Iterator[object]:
        if "another-1" in str(folder):
            onerror(PermissionError(13, "Permission denied", str(folder)))
        return real(folder, onerror=onerror)

    real = os.walk
    monkeypatch.setattr("os.walk", walk)
    done = swept(tmp_path, is_applied=True)
    assert done["another-1"].startswith("kept: no coordinator stream of it")
    assert done["gone-1"] == "removed: the job was deleted"
    assert cleaned == [("gone-1", "nm1")]


def test_a_directory_whose_own_file_cannot_be_read_stays(
    tmp_path: Path, cleaned: list[tuple[str, str]]
) -> None:
    """Also of a job that was deleted; the host is not called clean."""
    path = store_in(tmp_path, "gone-1", "", text="half")
    (outcome,) = swept(tmp_path, is_applied=True, has_orphans=True).values()
    assert outcome.startswith(f"kept: {META_FILE} is damaged")
    assert path.exists()
    assert cleaned == []


def test_orphans_go_by_the_operators_word(
    tmp_path: Path, cleaned: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the log of the directory is gone, and YARN runs no application of the job."""
    path = store_in(tmp_path, "strange-1", "id-3")
    monkeypatch.setattr(HostClean, "_topic_id", lambda *_: "id-3")
    kept = swept(tmp_path, is_applied=True, has_orphans=True)
    assert kept == {"strange-1": "kept: its log kafka.log is still there"}
    monkeypatch.setattr(HostClean, "_topic_id", lambda *_: None)

    class Yarn(ResourceManagerRest):
        runs: tuple[Application, ...] = (
            Application("application_1_1", "strange_1", "RUNNING", "", "", "", "", 0),
        )

        def nodes(self) -> tuple[()]:
            return ()

        def tagged_applications(self, tag: str) -> tuple[Application, ...]:
            assert tag.startswith("homeport-job-")
            return self.runs

    yarn = Yarn((), "nowhere")
    monkeypatch.setattr(HostClean, "_yarn", yarn)
    (outcome,) = swept(tmp_path, is_applied=True, has_orphans=True).values()
    assert outcome.startswith("kept: job.name = 'strange': YARN runs application_1_1 of the job")
    Yarn.runs = ()
    (outcome,) = swept(tmp_path, is_applied=True, has_orphans=True).values()
    assert outcome == "removed: nothing knows its job, and its log kafka.log is gone"
    assert not path.exists()
    assert cleaned == []


def test_orphans_are_those_of_all_jobs(tmp_path: Path) -> None:
    """The option alone is refused."""
    file = tmp_path / "host.properties"
    file.write_text("job.default.system=kafka", encoding="utf-8")
    with pytest.raises(ConfigError, match="--orphans is missing: it is for all jobs of a host"):
        run(["clean", f"--config-path={file}", "--orphans"])


def test_a_folder_without_any_jobs_is_noted(
    tmp_path: Path, cleaned: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """No other line would name it."""
    del cleaned
    file, base = tmp_path / "host.properties", tmp_path / "base"
    file.write_text("".join(f"{key}={value}\n" for key, value in HOST.items()))
    base.mkdir()
    run(["clean", "--all-jobs", f"--base={base}", f"--config-path={file}"])
    assert capsys.readouterr() == ("", f"note: {base} has no folder of a job\n")


JOB = {"job.name": "mine", "job.coordinator.factory": "yarn", "task.class": "m:T"}


@pytest.fixture
def launchers(
    tmp_path: Path, cleaned: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> list[Config]:
    """A launcher on nm1, whose AM has that job; the configurations that find jobs."""
    found: list[Config] = []
    del cleaned
    monkeypatch.setenv("LOGGED_STORE_BASE_DIR", str(tmp_path))
    monkeypatch.setenv("NM_HOST", "NM1")
    am = SimpleNamespace(config=lambda: {**HOST, **JOB})
    monkeypatch.setattr(host_clean, "am_client", lambda *_: am)
    recorded_job: Callable[[Config], contextlib.AbstractContextManager[object]]
    recorded_job = vars(host_clean)["recorded_job"]

    def opened(config: Config) -> contextlib.AbstractContextManager[object]:
        found.append(config)
        return recorded_job(config)

    monkeypatch.setattr(host_clean, "recorded_job", opened)
    return found


def test_a_launcher_removes_what_the_command_would(
    tmp_path: Path, launchers: list[Config], caplog: pytest.LogCaptureFixture
) -> None:
    """A line for what goes, none for what stays, and the counts; of its own keys only places."""
    alive, gone = store_in(tmp_path, "lives-1", "id-1"), store_in(tmp_path, "gone-1", "id-gone")
    caplog.set_level("INFO")
    host_clean.clean_for_launcher(7 * DAY_MS)
    assert (alive.exists(), gone.exists()) == (True, False)
    (removed, counts) = caplog.messages
    assert removed.startswith("gone-1/counts/Partition_0: removed: the job was deleted")
    assert counts == f"{tmp_path}: 1 removed, 1 kept"
    (config,) = launchers
    assert dict(config) == {**HOST, "job.name": "lives", "job.id": "1"}


def test_one_launcher_of_a_host_cleans_at_a_time(
    tmp_path: Path, launchers: list[Config], caplog: pytest.LogCaptureFixture
) -> None:
    """The other one leaves it, with a line in its log."""
    gone = store_in(tmp_path, "gone-1", "id-gone")
    caplog.set_level("INFO")
    with (tmp_path / f".clean-of-user-{os.geteuid()}").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        host_clean.clean_for_launcher(7 * DAY_MS)
    assert gone.exists()
    assert (caplog.messages, launchers) == (["another launcher cleans this host now"], [])


def test_what_a_job_has_left_goes_on_a_host_that_is_another_jobs_too(
    tmp_path: Path, cleaned: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """YARN's own word for the host of a launcher counts as that of its ResourceManager."""
    del cleaned
    old = store_in(tmp_path, "lives-1", "id-1")
    os.utime(next(old.iterdir()), (0, 0))
    elsewhere = Owner("counts", None, HostRole.ELSEWHERE, Host("nm2"))  # type: ignore[arg-type]  # not looked at
    job: Any = vars(host_clean)["recorded_job"](HOST.merged({"job.name": "lives"}))
    with job as found:
        found.owners = lambda *_: {PurePosixPath("counts/Partition_0"): elsewhere}
    monkeypatch.setattr(host_clean, "recorded_job", lambda _: contextlib.nullcontext(found))
    limit = Limit(0, time.time_ns() // 1_000_000)

    def outcome(known: frozenset[Host] | None) -> str:
        run = HostClean(HOST, "nm1", limit, is_applied=False, has_orphans=False, known=known)
        (item,) = run.outcomes(tmp_path)
        return item.shown().outcome

    assert outcome(None) == "kept"
    assert outcome(frozenset({Host("nm1")})) == "would be removed"
