"""Looks for tests of a folder that take no branch and notice no mutant alone: docs/mutation.md.

Deletes them from their files, and then the helpers that nothing uses any more.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from mutation import recording, trial
from mutation.mutants import Mutant, mutants_of
from mutation.recording import CODE, ROOT, Recorded
from mutation.results import FOLDER, LEFT, Module, Verdict
from mutation.run import Runner

_HELD = re.compile(
    r"safety [A-Z]\d|SAMZA-|KAFKA-|regression"
    r"|raises|match=|refus|error|secret|parametrize|given\(|def test_(every|each|all)_",
    re.IGNORECASE,
)
"""A citation of a rule or an issue; a refusal; a table; a whole enumeration."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAMED = re.compile(r"\btest_\w+\b(?!\.py)")

Branch = tuple[str, int, int]
"""A path, and the lines that the branch leaves and reaches; below 0 at a function's ends."""


def function_of(test: str) -> str:
    """Return the node id without its parameters."""
    return test.partition("[")[0]


def named_in(text: str) -> set[str]:
    """Return the names of tests that a page or a table states."""
    return set(_NAMED.findall(text))


def may_go(source: str, named: Collection[str]) -> dict[str, int]:
    """Return {name: number of lines} of the tests of a file that nothing but their proof holds.

    Others stay: those that a page names (``named``), that cite a rule or an issue, tables,
    refusals, whole enumerations, and methods.
    """
    lines = source.splitlines()
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, _FUNCTIONS) and node.name.startswith("test_"):
            own = lines[first_line(node) - 1 : node.end_lineno]
            if node.name not in named and not _HELD.search("\n".join(own)):
                found[node.name] = len(own)
    return found


def first_line(node: ast.stmt) -> int:
    """Return the line where the statement begins, with its decorators."""
    parts: list[ast.stmt | ast.expr] = [node, *getattr(node, "decorator_list", ())]
    return min(part.lineno for part in parts)


def spans_of(source: str) -> list[tuple[int, int]]:
    """Return the first and last lines of the functions of a source, the inner ones first."""
    found = [n for n in ast.walk(ast.parse(source)) if isinstance(n, _FUNCTIONS)]
    spans = [(node.lineno, node.end_lineno or node.lineno) for node in found]
    return sorted(spans, key=lambda span: span[1] - span[0])


def needs_of(
    takers: Mapping[Branch, int], spans: Mapping[str, Sequence[tuple[int, int]]]
) -> set[int]:
    """Return the takers of each branch, and of each two branches of one function, as masks.

    ``takers``: {branch: mask of its tests}. ``spans``: {path: ``spans_of`` its source}.
    """
    of_function: defaultdict[tuple[str, int, int], set[int]] = defaultdict(set)
    for (path, start, end), mask in takers.items():
        line = start if start > 0 else abs(end)
        inmost = next((s for s in spans.get(path, ()) if s[0] <= line <= s[1]), None)
        if inmost is not None:
            of_function[path, *inmost].add(mask)
    pairs = {a & b for masks in of_function.values() for a, b in combinations(masks, 2)}
    return ({*takers.values()} | pairs) - {0}


def selected(needs: Collection[int], lines: Sequence[int]) -> int:
    """Return the mask of few and short tests, at least one of each mask of ``needs``.

    ``lines``: {number of a test: its number of lines}.
    """
    due = list(needs)
    needing: list[set[int]] = [set() for _ in lines]
    for place, need in enumerate(due):
        for number in _numbers(need):
            needing[number].add(place)
    kept: list[int] = []
    while any(needing):
        gain = [len(found) / lines[n] ** 0.7 for n, found in enumerate(needing)]
        best = gain.index(max(gain))
        kept.append(best)
        for place in tuple(needing[best]):
            for number in _numbers(due[place]):
                needing[number].discard(place)
    mask = sum(1 << number for number in kept)
    for number in sorted(kept, key=lambda n: -lines[n]):
        rest = mask & ~(1 << number)
        if all(need & rest for need in due if need >> number & 1):
            mask = rest
    return mask


def _numbers(mask: int) -> Iterator[int]:
    """Yield the places of the bits that are set, from the lowest on."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


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
        named = named_in("\n".join(page.read_text(encoding="utf-8") for page in pages))
        lines = {
            f"{file.relative_to(ROOT)}::{name}": number
            for file in sorted((ROOT / folder).rglob("test_*.py"))
            for name, number in may_go(file.read_text(encoding="utf-8"), named).items()
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
        spans = {path: spans_of(Path(path).read_text(encoding="utf-8")) for path in paths}
        needs = {need for need in needs_of(takers, spans) if need < stays}
        kept = selected(needs, [self.lines[test] for test in order])
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


_WORD = re.compile(r"[A-Za-z_]\w*")
_FOUND_BY_NAME = re.compile(r"pytest|test_|Test|__")
_PLAIN = re.compile(r"(pytest\.fixture|contextmanager|cache|functools\.cache|dataclass)\b")
"""Another decorator may register what it decorates."""
_USERS = ("tests", "scripts", "docker")


def without(source: str, names: set[str]) -> str:
    """Return the source without the module's functions, classes and constants of these names."""
    lines = source.splitlines(keepends=True)
    body = ast.parse(source).body
    for node, following in reversed([*zip(body, [*body[1:], None], strict=True)]):
        if not names & _names_of(node):
            continue
        start, end = first_line(node) - 1, node.end_lineno or 0
        while start and lines[start - 1].startswith("#"):
            start -= 1
        match node, following:
            case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(), end_lineno=int(its_end)):
                end = its_end
        del lines[start:end]
    return "".join(lines)


def unused(sources: Mapping[Path, str]) -> dict[Path, set[str]]:
    """Return {path: names of its helpers} that no other word of the sources is."""
    words = Counter(word for source in sources.values() for word in _WORD.findall(source))
    found: dict[Path, set[str]] = {}
    for path, source in sources.items():
        lines = source.splitlines()
        for node in ast.parse(source).body:
            own = Counter(_WORD.findall("\n".join(lines[first_line(node) - 1 : node.end_lineno])))
            names = _names_of(node)
            if names and _is_helper(node) and all(words[n] == own[n] for n in names):
                found.setdefault(path, set()).update(names)
    return found


def _names_of(node: ast.stmt) -> set[str]:
    """Return the names that the statement gives; of a fixture also the one that tests ask for."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            given = [k for d in node.decorator_list for k in getattr(d, "keywords", ())]
            return {node.name, *(ast.unparse(k.value).strip("'") for k in given if k.arg == "name")}
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def _is_helper(node: ast.stmt) -> bool:
    """Return whether the statement has no other purpose than to be used by its name."""
    decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
    plain = all(_PLAIN.match(d) and "autouse" not in d for d in decorators)
    return plain and all(n.isidentifier() and not _FOUND_BY_NAME.match(n) for n in _names_of(node))


def delete(tests: Iterable[str]) -> None:
    """Delete these tests, files without a test, and helpers that lost their last user."""
    before = unused(_sources())
    due: dict[Path, set[str]] = {}
    for file, _, name in (test.partition("::") for test in tests):
        due.setdefault(ROOT / file, set()).add(name)
    while due:
        for path, names in due.items():
            _rewrite(path, without(path.read_text(encoding="utf-8"), names))
        now = unused(_sources()).items()
        due = {path: new for path, names in now if (new := names - before.get(path, set()))}


def _rewrite(path: Path, source: str) -> None:
    """Write the source, without imports that it does not use; none where no test is left."""
    if path.name.startswith("test_") and "def test_" not in source:
        path.unlink()
        return
    path.write_text(source, encoding="utf-8")
    ruff = str(Path(sys.executable).with_name("ruff"))
    subprocess.run([ruff, "check", "-q", "--select", "F401,I", "--fix", path], check=True)
    subprocess.run([ruff, "format", "-q", path], check=True)


def _sources() -> dict[Path, str]:
    files = [file for folder in _USERS for file in (ROOT / folder).rglob("*.py")]
    return {file: file.read_text(encoding="utf-8") for file in files}
