"""Names of state directories.

PURE. Source: Samza 1.8 ``StorageManagerUtil.getTaskStoreDir``: a space becomes ``_``.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote

from homeport.config.errors import StoreError
from homeport.job_coordinator.model.ids import TaskName

_LONGEST = 200


def state_root_name(job_name: str, job_id: str) -> str:
    """``<job.name>-<job.id>``, one path part.

    Hyphens of the name are kept where the id has none, so that names stay as Samza's; a hyphen of
    the id is escaped: ("a", "1-0") and ("a-1", "0") differ (safety K3).
    """
    return f"{_part(job_name)}-{_part(job_id).replace('-', '%2D')}"


def task_directory(store: str, task_name: TaskName) -> PurePosixPath:
    """``<store>/<task>`` below the job's root."""
    return PurePosixPath(_spaces(_part(store)), _spaces(_part(task_name)))


def _spaces(part: str) -> str:
    return part.replace(" ", "_")


def _part(text: str) -> str:
    """``text`` as one path part; harmless names stay as they are."""
    escaped = "".join(_escaped(char) for char in text)
    if escaped in {"", ".", ".."}:
        escaped = escaped.replace(".", "%2E") or "%00"
    if len(escaped.encode()) > _LONGEST:
        raise StoreError(f"{text[:60]!r}... is longer than the {_LONGEST} bytes of a path part")
    return escaped


def _escaped(char: str) -> str:
    unsafe = char in "%/\\" or not char.isprintable()
    return quote(char, safe="", errors="surrogatepass") if unsafe else char
