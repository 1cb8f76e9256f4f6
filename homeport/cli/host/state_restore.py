"""``homeport state restore``: store directories made of the changelogs, in a folder apart."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from homeport.cli.formatting import number, size
from homeport.cli.host.job_on_host import RecordedJob, changelog_reader
from homeport.cli.options import Progress
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.progress.restore import RestorePlan
from homeport.container.progress.restore_schedule import WORKER_MB, WorkerLimits
from homeport.container.restore.restore_workers import RestoreWorkers
from homeport.container.storage.container_storage import ContainerStorage
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.own_folders import make_own_folder
from homeport.job_coordinator.status.container_report import RestoreProgress

MARK = ".homeport-restore"
"""In the folder that a restore made: whose state is below it."""

_MEMORY_BYTES = 128 * 1024 * 1024
_PROGRESS_S = 2.0

Report = Callable[[str], None]


def claim(folder: Path, job: JobConfig) -> bool:
    """Claim ``folder`` for restores of this job; return whether one had begun there.

    ConfigError: it holds something else, or cannot be made.
    """
    owner = {"job.name": job.name, "job.id": job.id}
    mark = folder / MARK
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if mark.exists():
            if json.loads(mark.read_bytes()) == owner:
                return True
            raise _foreign(folder, "it holds the restored state of another job")
        if any(folder.iterdir()):
            raise _foreign(folder, "it is not empty, and no restore of this job made it")
        mark.write_text(json.dumps(owner), encoding="utf-8")
    except ValueError:
        raise _foreign(folder, f"its {MARK} is damaged") from None
    except OSError as error:
        raise _foreign(folder, f"it cannot be used: {error.strerror}") from None
    return False


def _foreign(folder: Path, rule: str) -> ConfigError:
    return ConfigError("--to", str(folder), rule, "name a new folder")


def restore(
    job: RecordedJob,
    folder: Path,
    stores: Sequence[StoreConfig],
    tasks: Sequence[TaskModel],
    report: Report,
) -> Iterator[str]:
    """Bring each store of each task to its changelog's head, below ``folder``; a line each.

    Task by task, so that what is finished needs only its tail when all is run again.
    DiskFullError: there is no room. StoreError: another process has one of the directories
    open. UnavailableError: a changelog could not be read to its head.
    """
    root = folder / job.job.directory_name
    make_own_folder(root, below=folder)
    # A container would begin this one empty; the operator wants its contents.
    kept = [replace(store, clean_on_start=False) for store in stores if store.is_persistent]
    grouper = job.job.ssp_grouper_factory
    cores = os.cpu_count() or 1
    limits = WorkerLimits(cores, WORKER_MB)
    workers = RestoreWorkers(job.config, limits, cores, time.sleep)
    with changelog_reader(job) as reader:
        for task in tasks:
            scratch = folder / ".scratch"  # for stores without a changelog: none is restored
            storage = ContainerStorage(root, scratch, kept, [task], _MEMORY_BYTES, grouper)
            listener = _Listener(report, Progress(_PROGRESS_S, report=report))
            try:
                storage.open()
                storage.restore(reader, listener, workers)
            finally:
                storage.close()
            yield from listener.results


@dataclass
class _Listener:
    report: Report
    progress: Progress
    results: list[str] = field(default_factory=list)

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        if plan.rebuild:
            how = f"begins from the start: {plan.reason}"
        elif plan.reason is None:
            how = f"goes on at {plan.start}"
        else:
            how = "begins"
        self.report(f"{store}/{task_name}: {how}; offsets {plan.start} to {plan.head}")

    def restore_progress(self, progress: RestoreProgress) -> None:
        left = progress.seconds_left
        self.progress.show(
            f"{progress.store}/{progress.task}: {progress.records} records, "
            f"{size(progress.bytes)}, {progress.records_per_s:.0f} records/s"
            + ("" if left is None else f", about {left:.0f} s left")
        )

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        how = {"none": "nothing was missing", "tail": "the rest was read"}
        words = how.get(result.kind.value, "read in full")
        counted = number(result.records, "record")
        self.results.append(f"{store}/{task_name}: restored, {words}, {counted}")
