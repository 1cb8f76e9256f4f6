"""Which tests a folder can spare: few tests that take each branch, and those that stay anyway."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

_HELD = re.compile(
    r"safety [A-Z]\d|SAMZA-|KAFKA-|regression"
    r"|raises|match=|refus|error|secret|parametrize|given\(|def test_(every|each|all)_",
    re.IGNORECASE,
)
"""A citation of a rule or an issue; a refusal; a table; a whole enumeration."""
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
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
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
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [n for n in ast.walk(ast.parse(source)) if isinstance(n, functions)]
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
