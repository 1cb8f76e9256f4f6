"""What becomes of each directory of a job on this host, and its removal."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from homeport.cli.formatting import age, size
from homeport.config.errors import HomeportError
from homeport.container.progress.host_directories import DirectoryKind, freed_bytes
from homeport.container.storage.cleaner import Judge, Judgement, Limit, remove
from homeport.container.storage.host_survey import FoundDirectory, found_directories
from homeport.job_coordinator.model.wire_form import about


class Swept(Struct, frozen=True):
    """What became of one directory, for a script."""

    path: Annotated[str, about("of the directory")]
    kind: Annotated[DirectoryKind, about("what it holds")]
    outcome: Annotated[str, about("(would be) removed, not removed, kept")]
    reason: Annotated[str, about("why")]
    bytes: Annotated[int, about("its size")]
    age_ms: Annotated[int, about("since its newest file was written")]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one directory, and why; ``age_ms``: of its newest file."""

    judgement: Judgement
    what: str
    reason: str
    age_ms: int

    def shown(self) -> Swept:
        """Return it for a script."""
        found, kind = self.judgement.found, self.judgement.kind
        path, taken = str(found.path), found.extent.size_bytes
        return Swept(path, kind, self.what, self.reason, taken, self.age_ms)

    def __str__(self) -> str:
        found = self.judgement.found
        held = f", open by {found.holder}" if found.holder else ""
        extent = f"{size(found.extent.size_bytes)}, newest file {age(self.age_ms)} old"
        return f"{found.name}: {self.what}: {self.reason}; {extent}{held}"


class Sweep:
    """What one run of the command finds and removes."""

    def __init__(
        self, name: str, judges: Callable[[], Judge], limit: Limit, *, is_applied: bool
    ) -> None:
        """Look at nothing yet; ``name`` is the job's, for people. ``judges``: as of ``remove``."""
        self._name = name
        self._judges = judges
        self._limit = limit
        self._is_applied = is_applied
        self._kept: Counter[str] = Counter()
        self._removed: Counter[str] = Counter()
        self._links: list[tuple[tuple[int, int], int, int]] = []
        self._freed = 0
        self.faults = 0

    def outcomes(self, folder: Path) -> Iterator[Outcome]:
        """Yield each directory of the job below ``folder`` and what became of it."""
        judge = self._judges()
        for found in found_directories(folder):
            judgement, fault = judge(found), None
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
        judgement, freed = remove(found, self._judges)
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
