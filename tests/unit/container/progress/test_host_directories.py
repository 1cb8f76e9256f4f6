"""What a directory is to a job on a host, and whether it may be removed."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_jobs import model_of, task_of

from homeport.config.errors import StoreError
from homeport.config.path_names import job_folder, job_of_folder
from homeport.container.progress.host_directories import (
    DirectoryKind,
    HostRole,
    Owner,
    checkpointed,
    duration_ms,
    freed_bytes,
    judged,
    kind_of,
    owners,
    task_directory,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel

NM1, NM2, NM3 = Host("nm1"), Host("nm2"), Host("nm3")
DAY_MS = 86_400_000
CONTAINERS = list(model_of({}, task_of()).containers.values())
(TASK,), (STANDBY,) = (tuple(container.tasks.values()) for container in CONTAINERS)
OWN = PurePosixPath("counts/Partition_0")


def _owner(host: Host, **task_hosts: Host) -> Owner:
    hosts = {"active": TASK.task_name, "standby": STANDBY.task_name}
    found = owners(["counts"], CONTAINERS, {hosts[k]: v for k, v in task_hosts.items()}, {}, host)
    assert list(found) == [OWN]
    return found[OWN]


def test_a_tasks_role_on_a_host_is_where_it_last_ran() -> None:
    """Active, standby, or elsewhere; the directory is the active task's in each role."""
    assert _owner(NM1, active=NM1, standby=NM2).role is HostRole.ACTIVE
    assert _owner(NM2, active=NM1, standby=NM2).role is HostRole.STANDBY
    assert _owner(NM3, active=NM1, standby=NM2) == Owner("counts", TASK, HostRole.ELSEWHERE, NM1)
    assert _owner(NM1).active_host is None


def test_what_a_container_has_whole_is_at_home_where_its_first_task_is() -> None:
    """It has one directory for each active container, and a standby has none of its own."""
    empty = ContainerModel(ProcessorId("1"), {})
    hosts = {TASK.task_name: NM1}
    found = owners([], [*CONTAINERS, empty], hosts, {}, NM1, ["airlines"])
    directory = PurePosixPath("airlines/container-0")
    assert found == {directory: Owner("airlines", TASK, HostRole.ACTIVE, NM1)}
    found = owners([], CONTAINERS, hosts, {}, NM3, ["airlines"])
    assert found[directory].role is HostRole.ELSEWHERE


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("counts/Partition_0", DirectoryKind.STORE),
        ("counts/Partition_0-1700000000000-123456", DirectoryKind.CHECKPOINT),
        ("counts/Partition_9-1700000000000-123456", DirectoryKind.CHECKPOINT),
        ("counts/Partition_9", DirectoryKind.VANISHED_TASK),
        ("old/Partition_0", DirectoryKind.VANISHED_STORE),
    ],
)
def test_every_directory_is_of_one_kind(name: str, kind: DirectoryKind) -> None:
    """A store of a task, a checkpoint of Samza's, or of a task or store that is gone."""
    known = owners(["counts"], CONTAINERS, {}, {}, NM1)
    assert kind_of(PurePosixPath(name), known) is kind


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("Partition_9-1700000000000-123456", "Partition_9"),
        ("Partition_9-1-2-3", "Partition_9-1"),
        ("Partition_9", None),
    ],
)
def test_a_checkpoint_of_samzas_has_the_directory_of_its_task(name: str, task: str | None) -> None:
    """Which stands before two numbers."""
    assert checkpointed(name) == task


def _is_removed(role: HostRole | None, kind: DirectoryKind, age_ms: int) -> tuple[bool, str]:
    owner = None if role is None else Owner("counts", TASK, role, NM2)
    verdict = judged(kind, owner, is_held=False, age_ms=age_ms, limit_ms=7 * DAY_MS)
    return verdict.is_removable, verdict.reason


@pytest.mark.parametrize("role", [HostRole.ACTIVE, HostRole.STANDBY])
def test_state_at_its_home_is_kept_at_any_age(role: HostRole) -> None:
    """R38, job running here: a task that comes home finds its state, in either role."""
    removed, reason = _is_removed(role, DirectoryKind.STORE, 1000 * DAY_MS)
    assert (removed, reason) == (False, f"the job's own: {role} on this host")


def test_state_in_use_is_kept_whatever_the_stream_says() -> None:
    """A process that has it open may be a container that the stream has not heard of yet."""
    verdict = judged(
        DirectoryKind.VANISHED_TASK, None, is_held=True, age_ms=1000 * DAY_MS, limit_ms=0
    )
    assert (verdict.is_removable, verdict.reason) == (False, "in use")


def test_old_state_of_a_task_that_runs_elsewhere_is_removed() -> None:
    """R38, preferred host elsewhere: removed, once it has grown old."""
    elsewhere = HostRole.ELSEWHERE
    old = (True, "its task last ran on nm2")
    assert _is_removed(elsewhere, DirectoryKind.STORE, 7 * DAY_MS) == old
    young = _is_removed(elsewhere, DirectoryKind.STORE, 7 * DAY_MS - 1)
    assert young == (False, "its task last ran on nm2, but younger than the limit")


def test_state_of_a_task_that_never_ran_is_judged_by_its_age() -> None:
    """Its home is unknown."""
    owner = Owner("counts", TASK, HostRole.ELSEWHERE, None)
    verdict = judged(DirectoryKind.STORE, owner, is_held=False, age_ms=9, limit_ms=1)
    assert (verdict.is_removable, verdict.reason) == (True, "its task never ran on this host")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (DirectoryKind.CHECKPOINT, "a checkpoint of Samza's, which nothing here reads"),
        (DirectoryKind.VANISHED_TASK, "the job has no such task"),
        (DirectoryKind.VANISHED_STORE, "the job has no such store with a changelog"),
    ],
)
def test_old_state_without_a_task_is_removed(kind: DirectoryKind, reason: str) -> None:
    """R38, inactive task directory; Samza leaves the other two for ever."""
    assert _is_removed(None, kind, 8 * DAY_MS) == (True, reason)
    assert _is_removed(None, kind, DAY_MS)[0] is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("7d", 7 * DAY_MS), ("12h", 43_200_000), ("30m", 1_800_000), ("90s", 90_000), ("0s", 0)),
        *((text, None) for text in ("", "7", "d", "-1d", "1.5h", "1w")),
    ],
)
def test_an_age_is_a_number_with_a_unit(text: str, expected: int | None) -> None:
    """Days, hours, minutes or seconds; a number alone could be meant in any unit."""
    assert duration_ms(text) == expected


def test_a_file_with_another_name_frees_nothing() -> None:
    """Tables that a checkpoint shares with its store count when their last name goes."""
    shared, own = (1, 10), (1, 11)
    assert freed_bytes([(shared, 2, 4096), (own, 1, 8192)]) == 8192
    assert freed_bytes([(shared, 2, 4096), (shared, 2, 4096)]) == 4096


def test_names_are_samzas() -> None:
    """A space becomes an underscore; brackets and commas stay."""
    assert task_directory("store1", TaskName("Partition 0")) == PurePosixPath("store1/Partition_0")
    name = TaskName("SystemStreamPartition [kafka, in, 0]")
    expected = PurePosixPath("store1/SystemStreamPartition_[kafka,_in,_0]")
    assert task_directory("store1", name) == expected
    assert job_folder("my-job", "1") == "my-job-1"
    assert job_folder("a", "1-0") != job_folder("a-1", "0"), "a hyphen is escaped (safety K3)"


@given(st.text(min_size=0, max_size=20))
def test_a_name_is_always_one_part_below_its_parent(text: str) -> None:
    """No task name leads out of its store's directory, or into another's."""
    path = task_directory("s", TaskName(text))
    assert len(path.parts) == 2
    assert path.parts[1] not in {"", ".", ".."}
    assert "\0" not in str(path)


def test_a_name_that_no_file_system_takes_is_refused() -> None:
    """A path part has at most 200 bytes here."""
    with pytest.raises(StoreError):
        task_directory("s", TaskName("x" * 201))


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=10))
def test_a_jobs_folder_says_whose_it_is(name: str, job_id: str) -> None:
    """Any name and id are read back."""
    try:
        folder = job_folder(name, job_id)
    except StoreError:
        return
    assert job_of_folder(folder) == (name, job_id)


@pytest.mark.parametrize(
    "folder", ["lost+found", "tmp", "", "-", "a%2-1", "a/b-1", "x" * 300 + "-1"]
)
def test_another_folder_is_no_jobs(folder: str) -> None:
    """Nor is one that a job would have in another spelling."""
    assert job_of_folder(folder) is None
