"""A grouper that is in the job's package, on a real YARN cluster; a kill of its job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from yarn_jobs import PARTITIONS, Job

GROUPING = """
from homeport.job_coordinator.grouper.task_name_grouper import TaskNameGrouper


class Halves(TaskNameGrouper):
    def group(self, tasks, task_locality, processor_locality):
        names, half = [task.task_name for task in tasks], len(tasks) // 2
        return {"first half": names[:half], "second-half": names[half:]}
"""


def test_the_am_groups_with_the_jobs_own_class_and_a_kill_without_a_token_is_yarns(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """The AM imports it from the package; ids with a space and a hyphen are ids like others.

    Without the job's token the tool cannot stop it: YARN kills it, and the tool says so.
    """
    job = make_job("own-grouper")
    (job.package / "grouping.py").write_text(GROUPING)
    job.values |= {"task.name.grouper.factory": "grouping.Halves", "job.container.count": "2"}
    job.produce(100)
    job.run()
    assert sorted(job.wait_until_running()) == ["first half", "second-half"]
    containers = job.get("")["containers"]
    names = sorted(name for c in containers.values() for name in c["tasks"])
    assert names == sorted(f"Partition {n}" for n in range(PARTITIONS))
    assert len(containers["first half"]["tasks"]) == PARTITIONS // 2
    stranger = {**job.environment, "HOMEPORT_TOKEN_FILE": str(tmp_path / "none")}
    done = job.call("kill", env=stranger)
    assert done.stdout.strip() == f"killed {job.application_id} by YARN"
    assert "no token" in done.stderr
    assert job.application().state == "KILLED"
