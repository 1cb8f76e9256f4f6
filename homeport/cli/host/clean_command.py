"""``homeport clean``: removes the state that a job left behind on this host."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated

import typer
from msgspec import Struct

from homeport.cli.formatting import age, number, size
from homeport.cli.host.job_on_host import (
    Bases,
    HostName,
    JobFolder,
    host_named,
    job_folders_of,
    recorded_job,
)
from homeport.cli.options import AsJson, ConfigPath, Overrides, loaded, new_app, note
from homeport.config.errors import ConfigError, HomeportError, StoreError
from homeport.config.settings.standalone_section import require_no_migration
from homeport.container.progress.host_directories import (
    DirectoryKind,
    HostRole,
    Owner,
    duration_ms,
    freed_bytes,
)
from homeport.container.storage.cleaner import Judgement, Limit, Owners, judge, remove
from homeport.container.storage.host_survey import FoundDirectory, found_directories
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.wire_form import about, json_text

app = new_app()


@app.command()
def clean(
    *,
    config_path: ConfigPath,
    config: Overrides = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Remove; without it, only say what would be removed.")
    ] = False,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Age of the newest file: 7d, 12h, 30m or 90s.")
    ] = "7d",
    base: Bases = None,
    host: HostName = None,
    as_json: AsJson = False,
) -> None:
    """Removes what a job left on this host and does not need there, once it has grown old.

    Kept, whatever its age: what a process has open, and the directories of tasks whose locality is
    this host, as active or as standby. Removed: stores of tasks that last ran elsewhere, of tasks
    and stores that the job no longer has, and checkpoint directories of Samza's. Whether a store
    has an OFFSET makes no difference: its age is that of its newest file. Each directory is judged
    again, and removed, under its lock. Other jobs' directories are not looked at. What cannot be
    removed is said, and the rest goes on; exit code 1. Freed bytes are what the disk gets back.
    """
    limit_ms = duration_ms(older_than)
    if limit_ms is None:
        rule = "it must be a whole number with a unit: s, m, h or d"
        raise ConfigError("--older-than", older_than, rule, "such as 7d")
    with recorded_job(loaded(config_path, config)) as job, job.tree() as nodes:
        require_no_migration(job.view.recorded_config())
        name = host_named(job, host)
        folders = job_folders_of(job.job, base)
        note(f"from {job.view.origin}, on {name}: {', '.join(str(f.path) for f in folders)}")
        if host is None:
            _require_known(job.owners(name, nodes), name)
        limit = Limit(limit_ms, time.time_ns() // 1_000_000)
        owners = partial(job.owners, name, nodes)
        sweep = Sweep(job.job.directory_name, owners, limit, is_applied=apply)
        for folder in folders:
            for line in sweep.lines(folder, as_json=as_json):
                print(line, flush=True)
        for line in sweep.summary():
            note(line)
    if sweep.faults:
        raise StoreError(
            f"{number(sweep.faults, 'directory', 'directories')} not removed; see above"
        )


def _require_known(owners: Mapping[PurePosixPath, Owner], host: Host) -> None:
    """Something of the job is at home under that name, so that it is the one that YARN has.

    Raises:
        ConfigError: nothing is; under a wrong name, all would be taken for left behind.
    """
    roles = {owner.role for owner in owners.values()}
    if owners and roles == {HostRole.ELSEWHERE}:
        raise ConfigError(
            "--host",
            host,
            "no task of the job has its locality on a host of that name, which is this machine's "
            "own for itself",
            "say by --host what YARN, or job.location-id, calls it, or that it is this one all the "
            "same",
        )


class Swept(Struct, frozen=True):
    """What became of one directory, for a script."""

    path: Annotated[str, about("of the directory")]
    kind: Annotated[DirectoryKind, about("what it holds")]
    outcome: Annotated[str, about("kept, removed, would be removed, or not removed")]
    reason: Annotated[str, about("why")]
    bytes: Annotated[int, about("its size")]
    age_ms: Annotated[int, about("since its newest file was written")]


class Sweep:
    """What one run of the command finds and removes."""

    def __init__(self, name: str, owners: Owners, limit: Limit, *, is_applied: bool) -> None:
        """Nothing is looked at yet; ``name`` is the job's, for people."""
        self._name = name
        self._owners = owners
        self._limit = limit
        self._is_applied = is_applied
        self._kept: Counter[str] = Counter()
        self._removed: Counter[str] = Counter()
        self._links: list[tuple[tuple[int, int], int, int]] = []
        self._freed = 0
        self.faults = 0

    def lines(self, folder: JobFolder, *, as_json: bool) -> Iterator[str]:
        """Every directory of the job below ``folder`` and what became of it, a line each."""
        owners = self._owners()
        for found in found_directories(folder.path):
            judgement, fault = judge(found, owners, self._limit), None
            if judgement.verdict.is_removable:
                try:
                    judgement = self._removed_now(found, judgement)
                except HomeportError as error:
                    fault = str(error)
                    self.faults += 1
            is_removed = judgement.verdict.is_removable and fault is None
            counter = self._removed if is_removed else self._kept
            counter[found.name.parent.name] += found.extent.size_bytes
            yield self._line(judgement, fault, as_json=as_json)

    def _removed_now(self, found: FoundDirectory, judgement: Judgement) -> Judgement:
        if not self._is_applied:
            self._links.extend(found.extent.links)
            return judgement
        judgement, freed = remove(found, self._owners, self._limit)
        self._freed += freed
        return judgement

    def _line(self, judgement: Judgement, fault: str | None, *, as_json: bool) -> str:
        found, verdict = judgement.found, judgement.verdict
        what = "kept"
        if fault is not None:
            what = "not removed"
        elif verdict.is_removable:
            what = "removed" if self._is_applied else "would be removed"
        age_ms = self._limit.now_ms - found.extent.newest_ms
        if as_json:
            reason, taken = fault or verdict.reason, found.extent.size_bytes
            return json_text(Swept(str(found.path), judgement.kind, what, reason, taken, age_ms))
        held = f", open by {found.holder}" if found.holder else ""
        extent = f"{size(found.extent.size_bytes)}, newest file {age(age_ms)} old"
        return f"{found.name}: {what}: {fault or verdict.reason}; {extent}{held}"

    def summary(self) -> Iterator[str]:
        """Bytes per store, and what the disk got or would get back."""
        for store in sorted({*self._kept, *self._removed}):
            gone = "removed" if self._is_applied else "to be removed"
            kept, removed = size(self._kept[store]), size(self._removed[store])
            yield f"{self._name}/{store}: {kept} kept, {removed} {gone}"
        if self._is_applied:
            yield f"freed {size(self._freed)}"
        else:
            yield f"would free {size(freed_bytes(self._links))}; --apply removes"
