"""Names of state directories.

PURE. Source: Samza 1.8 ``StorageManagerUtil.getTaskStoreDir``: a space becomes ``_``.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from homeport.config.path_names import path_part
from homeport.job_coordinator.model.ids import TaskName


def task_directory(store: str, task_name: TaskName) -> PurePosixPath:
    """``<store>/<task>`` below the job's folder."""
    return PurePosixPath(_spaces(path_part(store)), _spaces(path_part(task_name)))


def _spaces(part: str) -> str:
    return part.replace(" ", "_")
