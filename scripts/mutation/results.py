"""The result of each mutant of a module: kept in a file per module, printed as a table and a list.

A file is good for as long as its module is as it was; what was not tried yet is tried next time.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from mutation.mutants import Mutant, mutants_of
from mutation.recording import ROOT

FOLDER = ROOT / "build" / "mutation"


class Verdict(StrEnum):
    """What became of a mutant. ``UNCOVERED``: no recorded test runs its lines."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"
    UNCOVERED = "no coverage"


LEFT = frozenset({Verdict.SURVIVED, Verdict.UNCOVERED})
"""What a test is still wanted for."""


@dataclass(frozen=True)
class Result:
    """``by``: the test that killed it, where one did."""

    verdict: Verdict
    by: str = ""


@dataclass
class Module:
    """One module, its mutants, and what became of those that were tried: {mutant's key: result}."""

    path: Path
    source: str
    mutants: Sequence[Mutant]
    results: dict[str, Result] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, folder: Path = FOLDER) -> Module:
        """Return the module at ``path``, with what is known of it as it is now."""
        source = path.read_text(encoding="utf-8")
        module = cls(path, source, mutants_of(source))
        kept = module.file(folder)
        found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
        if found.get("source") == module.digest:
            known = {mutant.key for mutant in module.mutants}
            module.results = {
                key: Result(Verdict(item["verdict"]), item["by"])
                for key, item in found["results"].items()
                if key in known
            }
        return module

    @property
    def digest(self) -> str:
        """Names the source."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def shown(self) -> str:
        """The path, as in the tree."""
        return (
            str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else self.path.name
        )

    @property
    def name(self) -> str:
        """The name it is imported by."""
        return f"homeport.{self.shown.removesuffix('.py').replace('/', '.')}"

    def file(self, folder: Path = FOLDER) -> Path:
        """Return where its results are kept."""
        return folder / f"{self.shown.removesuffix('.py').replace('/', '.')}.json"

    def keep(self, folder: Path = FOLDER) -> None:
        """Write what is known into its file."""
        results = {k: {"verdict": r.verdict, "by": r.by} for k, r in sorted(self.results.items())}
        stated = {"module": self.shown, "source": self.digest, "results": results}
        path = self.file(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(stated, indent=1), encoding="utf-8")
        temporary.replace(path)

    def untried(self) -> list[Mutant]:
        """Return the mutants of which nothing is known."""
        return [mutant for mutant in self.mutants if mutant.key not in self.results]

    def left(self) -> list[Mutant]:
        """Return the mutants that no test notices."""
        known = self.results
        return [m for m in self.mutants if m.key in known and known[m.key].verdict in LEFT]

    def counts(self) -> Counter[str]:
        """Return {verdict: how many mutants have it}."""
        return Counter(str(result.verdict) for result in self.results.values())


def table(modules: Iterable[Module]) -> list[str]:
    """Return one row per module, in Markdown, and one of the sums."""
    rows: list[tuple[str, int, Mapping[str, int]]] = [
        (module.shown, len(module.mutants), module.counts()) for module in modules
    ]
    sums: Counter[str] = Counter()
    for _, _, counts in rows:
        sums.update(counts)
    rows.append(("all", sum(number for _, number, _ in rows), sums))
    names = [str(verdict) for verdict in Verdict]
    lines = [
        f"| module | mutants | {' | '.join(names)} | not tried |",
        f"| --- {'| ---: ' * (len(names) + 2)}|",
    ]
    for name, number, counts in rows:
        stated = " | ".join(str(counts.get(verdict, 0)) for verdict in names)
        lines.append(f"| {name} | {number} | {stated} | {number - sum(counts.values())} |")
    return lines


def survivors(modules: Iterable[Module]) -> list[str]:
    """Return ``file:line: old → new`` of each mutant that no test notices."""
    return [
        f"{module.shown}:{mutant} ({module.results[mutant.key].verdict})"
        for module in modules
        for mutant in module.left()
    ]
