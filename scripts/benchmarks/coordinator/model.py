"""Section model: a JobModel of 100,000 tasks in 10,000 containers, then with a tenth more."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.jobs import config_of
from benchmarks.processes import peak_mb, result_of
from benchmarks.report import Row, Spent, at_most, table
from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel

TASKS, CONTAINERS, MORE_CONTAINERS = 100_000, 10_000, 11_000


def _config(containers: int) -> Config:
    keys = {
        "job.container.count": str(containers),
        "job.host-affinity.enabled": "true",
        "task.inputs": "kafka.large-input",
    }
    return config_of("127.0.0.1:9092", keys, "large")


def _computed(containers: int, before: PreviousAssignment) -> JobModel:
    counts = {SystemStream("kafka", "large-input"): TASKS}
    return calculate_job_model(_config(containers), counts, before)


def _owners(model: JobModel) -> dict[TaskName, ProcessorId]:
    return {task: id_ for id_, c in model.containers.items() for task in c.tasks}


def fewest_moves(sizes: list[int], containers: int) -> int:
    """The fewest tasks that any assignment to so many containers, balanced within one, must move.

    A container that stays keeps at most what it had and at most its new share; the larger shares
    are best given to those that had most. ``sizes``: tasks of each container now; ``containers``:
    no fewer than these.
    """
    share, larger = divmod(sum(sizes), containers)
    kept = sum(
        min(size, share + (place < larger))
        for place, size in enumerate(sorted(sizes, reverse=True))
    )
    return sum(sizes) - kept


def measured() -> dict[str, float]:
    """Compute, serialise, grow."""
    spent = Spent()
    model = _computed(CONTAINERS, NOTHING)
    compute_s, _ = spent.so_far()
    size = len(encode_job_model(model, mask_secrets=False))
    found = {**spent.found(), "compute_s": compute_s, "peak_mb": peak_mb(), "json_mb": size / 1e6}
    found["serialise_s"] = found["s"] - compute_s
    owners = _owners(model)
    numbers = {
        n: t.changelog_partition for c in model.containers.values() for n, t in c.tasks.items()
    }
    before = PreviousAssignment(task_processors=owners, changelog_partitions=numbers)
    spent = Spent()
    grown = _owners(_computed(MORE_CONTAINERS, before))
    found["grow_s"], _ = spent.so_far()
    found["moved"] = sum(grown[task] != owner for task, owner in owners.items())
    sizes = [len(container.tasks) for container in model.containers.values()]
    found["fewest"] = fewest_moves(sizes, MORE_CONTAINERS)
    return found


def rows() -> Iterator[Row]:
    """Time, CPU, memory of one process; then a tenth more containers."""
    found = result_of("coordinator.model.measured")
    yield from table(
        found,
        ("computed and serialised", "s", "s", 10),
        ("of that, to serialise it", "serialise_s", "s", None),
        ("CPU", "cpu_s", "s", None),
        ("largest memory of the process", "peak_mb", "MB", 1024),
        ("its JSON", "json_mb", "MB", None),
        ("computed for 11,000 containers after that", "grow_s", "s", None),
    )
    moved = "tasks moved by 11,000 containers (target: fewest possible)"
    yield at_most(moved, found["moved"], found["fewest"], "tasks")


SECTIONS = {"model": ("JobModel of 100,000 tasks in 10,000 containers", rows)}
