"""``homeport clean``: removes the state that a job left behind on this host."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from homeport.cli.formatting import age, number, size
from homeport.cli.host.job_on_host import Bases, HostName, JobFolder, place_named, recorded_job
from homeport.cli.options import AsJson, Named, described, new_app, note, print_item
from homeport.config.errors import ConfigError, HomeportError, StoreError
from homeport.config.settings.standalone_section import require_no_migration
from homeport.container.progress.host_directories import HostRole, Owner, duration_ms, freed_bytes
from homeport.container.storage.cleaner import Judgement, Limit, Owners, judge, remove
from homeport.container.storage.host_survey import FoundDirectory, found_directories
from homeport.job_coordinator.model.ids import Host

app = new_app()


@app.command()
@described(
    apply="Remove; without it, only say what would be removed.",
    older_than="Age of the newest file: 7d, 12h, 30m or 90s.",
)
def clean(
    *,
    named: Named,
    apply: bool = False,
    older_than: str = "7d",
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
    with recorded_job(named.config()) as job, job.tree() as nodes:
        require_no_migration(job.view.recorded_config())
        name, folders = place_named(job, host, base)
        if host is None:
            _require_known(job.owners(name, nodes), name)
        limit = Limit(limit_ms, time.time_ns() // 1_000_000)
        owners = partial(job.owners, name, nodes)
        sweep = Sweep(job.job.directory_name, owners, limit, is_applied=apply)
        for folder in folders:
            for outcome in sweep.outcomes(folder):
                print_item(outcome, as_json=as_json)
        for line in sweep.summary():
            note(line)
    if sweep.faults:
        raise StoreError(
            f"{number(sweep.faults, 'directory', 'directories')} not removed; see above"
        )


def _require_known(owners: Mapping[PurePosixPath, Owner], host: Host) -> None:
    """Require that something of the job is at home there: else all would seem left behind."""
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one directory, and why; ``age_ms``: of its newest file."""

    judgement: Judgement
    what: str
    reason: str
    age_ms: int

    def to_json(self) -> dict[str, Any]:
        """For a script."""
        found = self.judgement.found
        return {
            "path": str(found.path),
            "kind": self.judgement.kind.value,
            "outcome": self.what,
            "reason": self.reason,
            "bytes": found.extent.size_bytes,
            "age_ms": self.age_ms,
        }

    def __str__(self) -> str:
        """For people."""
        found = self.judgement.found
        held = f", open by {found.holder}" if found.holder else ""
        extent = f"{size(found.extent.size_bytes)}, newest file {age(self.age_ms)} old"
        return f"{found.name}: {self.what}: {self.reason}; {extent}{held}"


class Sweep:
    """What one run of the command finds and removes."""

    def __init__(self, name: str, owners: Owners, limit: Limit, *, is_applied: bool) -> None:
        """Look at nothing yet; ``name`` is the job's, for people."""
        self._name = name
        self._owners = owners
        self._limit = limit
        self._is_applied = is_applied
        self._kept: Counter[str] = Counter()
        self._removed: Counter[str] = Counter()
        self._links: list[tuple[tuple[int, int], int, int]] = []
        self._freed = 0
        self.faults = 0

    def outcomes(self, folder: JobFolder) -> Iterator[Outcome]:
        """Yield each directory of the job below ``folder`` and what became of it."""
        owners = self._owners()
        for found in found_directories(folder.path):
            judgement, fault = judge(found, owners, self._limit), None
            if judgement.verdict.is_removable:
                try:
                    judgement = self._removed_now(found, judgement)
                except HomeportError as error:
                    fault = str(error)
                    self.faults += 1
            what, is_removed = "not removed" if fault else "kept", False
            if judgement.verdict.is_removable and fault is None:
                what, is_removed = "removed" if self._is_applied else "would be removed", True
            counter = self._removed if is_removed else self._kept
            counter[found.name.parent.name] += found.extent.size_bytes
            age_ms = self._limit.now_ms - found.extent.newest_ms
            yield Outcome(judgement, what, fault or judgement.verdict.reason, age_ms)

    def _removed_now(self, found: FoundDirectory, judgement: Judgement) -> Judgement:
        if not self._is_applied:
            self._links.extend(found.extent.links)
            return judgement
        judgement, freed = remove(found, self._owners, self._limit)
        self._freed += freed
        return judgement

    def summary(self) -> Iterator[str]:
        """Yield bytes per store, and what the disk got or would get back."""
        for store in sorted({*self._kept, *self._removed}):
            gone = "removed" if self._is_applied else "to be removed"
            kept, removed = size(self._kept[store]), size(self._removed[store])
            yield f"{self._name}/{store}: {kept} kept, {removed} {gone}"
        if self._is_applied:
            yield f"freed {size(self._freed)}"
        else:
            yield f"would free {size(freed_bytes(self._links))}; --apply removes"
