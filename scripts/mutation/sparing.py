"""Looks for tests of a folder that take no branch and notice no mutant alone: docs/mutation.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mutation import recording, selection, trial
from mutation.mutants import Mutant, mutants_of
from mutation.recording import CODE, ROOT, Recorded
from mutation.results import FOLDER, LEFT, Module, Verdict
from mutation.run import Runner
from mutation.selection import Branch, function_of

_UNIT = "tests/unit/"
_BESIDE = ("tests/spec", "tests/transcripts")
_PAGES = ("*.md", "*/*.md", "docs/**/*.md", "tests/spec/*.toml", "tests/spec/*.py")

Work = list[tuple[Module, Mutant]]


@dataclass
class _Tried(Module):
    """A module whose results are those of some of its tests, so that no file keeps them."""

    def keep(self, folder: Path = FOLDER) -> None:
        """Do nothing."""


def mirrored(folder: str) -> str:
    """Return the folder of ours whose tests these are; SystemExit where there is none."""
    code = folder.rstrip("/").removeprefix(_UNIT)
    if code == folder.rstrip("/") or code.partition("/")[0] not in CODE:
        raise SystemExit(f"error: {folder}: name a folder of {_UNIT} that mirrors one of ours")
    return code


@dataclass
class Search:
    """Selects the tests that may go.

    Args:
        recorded: what the tests of the folder and those beside them run.
        lines: {node id without parameters: number of lines} of the tests that may go.
        spare: the tests that nothing has shown to be needed yet.
    """

    recorded: Recorded
    lines: Mapping[str, int]
    spare: set[str] = field(default_factory=set)

    @classmethod
    def begun(cls, folder: str) -> Search:
        """Run the tests of the folder and those beside them, and return what they take."""
        recorded = recording.record_branches([folder, *_BESIDE])
        passed = {function_of(test) for test in recorded.seconds}
        pages = {page for pattern in _PAGES for page in ROOT.glob(pattern)}
        named = selection.named_in("\n".join(page.read_text(encoding="utf-8") for page in pages))
        lines = {
            f"{file.relative_to(ROOT)}::{name}": number
            for file in sorted((ROOT / folder).rglob("test_*.py"))
            for name, number in selection.may_go(file.read_text(encoding="utf-8"), named).items()
        }
        search = cls(recorded, {test: n for test, n in lines.items() if test in passed})
        search.spare = search._selected()
        return search

    def _selected(self) -> set[str]:
        """Return tests without which each branch, and each two of a function, is still taken."""
        order = sorted(self.lines)
        stays = 1 << len(order)
        masks = {test: 1 << number for number, test in enumerate(order)}
        takers: defaultdict[Branch, int] = defaultdict(int)
        for test, path, start, end in self.recorded.branches():
            takers[path, start, end] |= masks.get(function_of(test), stays)
        paths = {path for path, _, _ in takers}
        spans = {path: selection.spans_of(Path(path).read_text(encoding="utf-8")) for path in paths}
        needs = {need for need in selection.needs_of(takers, spans) if need < stays}
        kept = selection.selected(needs, [self.lines[test] for test in order])
        return {test for test in order if not kept & masks[test]}

    def reached(self, modules: list[Path]) -> list[Module]:
        """Return the modules, with those of their mutants whose lines a spare test runs."""
        spare = self._recorded(is_spare=True)
        found: list[Module] = []
        for path in modules:
            source = path.read_text(encoding="utf-8")
            mutants = mutants_of(source, with_text=True)
            reached = [m for m in mutants if spare.of_lines(path, m.first, m.last)]
            found.append(_Tried(path, source, reached))
        return found

    def judge(self, work: Work, jobs: int, budget_s: float) -> list[str]:
        """Try the mutants, keep spare tests that alone notice one, and return the figures."""
        if not work:
            return ["no mutant was tried"]
        trial.prepare(sorted({test.partition("::")[0] for test in self.recorded.seconds}))
        self._try(work, jobs, budget_s, is_spare=False)
        left = [(m, u) for m, u in work if m.results[u.key].verdict in LEFT]
        before = len(self.spare)
        self._try(left, jobs, budget_s, is_spare=True)
        reached = self._recorded(is_spare=True)
        alone = 0
        for module, mutant in left:
            result = module.results[mutant.key]
            alone += result.verdict not in LEFT
            if result.verdict is Verdict.KILLED and "::" in result.by:
                self.spare.discard(function_of(result.by))
            elif result.verdict not in LEFT:  # a hang or a crash: any of its tests may notice it
                tests = reached.of_lines(module.path, mutant.first, mutant.last)
                self.spare.difference_update(map(function_of, tests))
        return [
            f"{len(work)} mutants tried: {len(work) - len(left)} noticed by others,",
            f"{alone} by one of them alone, {len(left) - alone} by none;",
            f"{before - len(self.spare)} of {before} tests that take no branch alone stay for them",
        ]

    def _try(self, work: Work, jobs: int, budget_s: float, *, is_spare: bool) -> None:
        if work:
            runner = Runner(self._recorded(is_spare=is_spare), jobs, budget_s)
            runner.require_sound(work)
            runner.try_all(work)

    def _recorded(self, *, is_spare: bool) -> Recorded:
        """Return the record of the spare tests, or of the others."""
        seconds = self.recorded.seconds
        chosen = {t: s for t, s in seconds.items() if (function_of(t) in self.spare) is is_spare}
        return Recorded(chosen, self.recorded.lines)

    def report(self) -> list[str]:
        """Return a line for each test that may go, and their sums."""
        spare = sorted(self.spare)
        recorded = self.recorded.seconds
        ours = {function_of(test) for test in recorded if not test.startswith(_BESIDE)}
        return [
            *(f"{test} ({self.lines[test]} lines)" for test in spare),
            f"{len(ours)} tests, {len(self.lines)} of them held by nothing but what they notice;",
            f"{len(spare)} may go, of {sum(self.lines[test] for test in spare)} lines",
        ]
