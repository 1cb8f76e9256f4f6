"""The directories that a deleted job has left on this host."""

import os
import shlex
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from homeport.cli.host.job_on_host import BASE_VARIABLE, JobFolder, job_folders_of
from homeport.cli.host.sweep import Outcome, Sweep
from homeport.cli.options import NamedJob
from homeport.config.path_names import job_folder
from homeport.config.secret_names import shown_value
from homeport.config.settings.sections import JobConfig
from homeport.container.progress.deleted_directories import DeletedTopics
from homeport.container.storage.cleaner import Limit, judge_deleted, remove_emptied
from homeport.job_coordinator.kafka.deleted_jobs import DeletedJob

GRACE_MS = 7 * 86_400_000
"""The age of a directory that only the name of its changelog assigns to a job."""


def own_folders_of(job: JobConfig, bases: list[Path] | None) -> list[JobFolder]:
    """Return where the job's state may lie on this host; none where nothing names a place."""
    is_named = bases or os.environ.get(BASE_VARIABLE) or job.logged_store_base_dir is not None
    return job_folders_of(job, bases) if is_named else []


def clean_command_of(named: NamedJob) -> str:
    """Return the command that removes the job's directories on the host where it is run."""
    given = (item.partition("=") for item in named.overrides or ())
    overrides = (f"--config={key}={shown_value(key, value)}" for key, _, value in given)
    words = ["homeport", "clean", f"--config-path={named.path}", *overrides, "--apply"]
    return shlex.join(words)


class DeletedState:
    """What one run of a command finds of a deleted job's state, and removes."""

    def __init__(
        self,
        deleted: DeletedJob,
        folders: Sequence[JobFolder],
        *,
        is_applied: bool,
        limit_ms: int = GRACE_MS,
    ) -> None:
        """Look at nothing yet. ``limit_ms``: in place of ``GRACE_MS``."""
        self._deleted, self._folders, self._is_applied = deleted, folders, is_applied
        self._limit = Limit(limit_ms, time.time_ns() // 1_000_000)
        self.sweeps: list[Sweep] = []
        self.is_whole = True
        """Whether all that was found was removed, or would be."""

    def outcomes(self) -> Iterator[Outcome]:
        """Yield each directory of the job and what became of it; then go folders without any."""
        name = job_folder(self._deleted.name, self._deleted.id)
        for folder in self._folders:
            judges = partial(judge_deleted, self._topics(folder), self._limit)
            sweep = Sweep(name, judges, self._limit, is_applied=self._is_applied)
            self.sweeps.append(sweep)
            for outcome in sweep.outcomes(folder.path):
                self.is_whole &= outcome.what in {"removed", "would be removed"}
                yield outcome
            if self._is_applied and folder.base is not None:
                remove_emptied(folder.path)

    def _topics(self, folder: JobFolder) -> DeletedTopics:
        """Return by which topics directories are known there.

        A folder that several jobs share has stores that the same input fills, and, of jobs of other
        Kafkas, changelogs of the same name.
        """
        deleted = self._deleted
        if folder.base is None:
            return DeletedTopics(frozenset(deleted.topic_ids), frozenset())
        ids = frozenset({*deleted.topic_ids, *deleted.input_ids})
        return DeletedTopics(ids, frozenset(deleted.changelogs))
