"""Words that the prose of this project does not use, each with what says it better.

Prose is docstrings, comments and texts of modules, shell comments, and pages. Run by
``scripts/check``.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BANNED = {
    r"who|whom|whoever": "name the process or the person: the driver, the operator",
    r"tell|tells|told|telling": "report, return, send, log, show",
    r"nobody|somebody": "name the subject: no container, another process",
    r"anew": "again, from the start",
    r"mak(?:es?|ing)\s+way": "stop, be replaced",
    r"(?:is|are|was|were) asked": "name the call: reads, requests, fetches",
}
"""Regular expression of words -> the remedy."""
QUOTING = ("tests/unit/scripts/test_prose_check.py",)
"""Tests of this check: they quote what it finds."""
_ABOUT = "Finds banned words in prose. Exit code 0: there are none."
_WORDS = re.compile(
    "|".join(rf"(?<![-\w])(?P<w{n}>{words})(?![-\w])" for n, words in enumerate(BANNED)),
    re.IGNORECASE,
)
_REMEDIES = tuple(BANNED.values())
_REPLACED = re.compile(r"\{[^{}]*\}")
_NAME = re.compile(r"[rbfuRBFU]*(?P<quote>['\"])(?!\1\1)\S*(?P=quote)")
"""A text without a space: a name, a key or a value."""
_QUOTED = re.compile(r'"[^"\n]*"|``[^`]*``|`[^`\n]*`')


@dataclass(frozen=True)
class Finding:
    """One banned word."""

    file: str
    line: int
    word: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.word!r} is not plain: {self.remedy}"


def findings(file: str, text: str) -> Iterator[Finding]:
    """The banned words of one file, in order; of a module, in its prose alone."""
    for number, prose in _prose_of_module(text) if file.endswith(".py") else _lines(text):
        for found in _WORDS.finditer(prose):
            remedy = _REMEDIES[int((found.lastgroup or "w0")[1:])]
            line = number + prose.count("\n", 0, found.start())
            yield Finding(file, line, found[0], remedy)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """A page; what it quotes, and code, is not its own prose."""
    yield 1, _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)


def _prose_of_module(text: str) -> Iterator[tuple[int, str]]:
    """Comments and texts with spaces; words that a docstring quotes are not its own."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
        elif token.type == tokenize.STRING and not _NAME.fullmatch(token.string):
            body = token.string
            if body.lstrip("rbfuRBFU").startswith('"""'):
                body = "   " + _QUOTED.sub(lambda q: " " * len(q[0]), body.strip('rbfuRBFU"'))
            yield token.start[0], _REPLACED.sub("", body) if _is_format(token.string) else body


def _is_format(literal: str) -> bool:
    return "f" in literal[: literal.index(literal[-1])].lower()


def main() -> int:
    """Exit code: 0 if nothing was found, else 1."""
    parser = argparse.ArgumentParser(prog="scripts/prose_check.py", description=_ABOUT)
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files and folders; all by default"
    )
    options = parser.parse_args()
    listed = subprocess.run(
        ["git", "ls-files", "--", *(options.paths or ["."])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    found = [
        finding
        for file in listed
        if file.endswith((".py", ".md", ".cfg")) and (ROOT / file).is_file()
        if file not in QUOTING
        for finding in findings(file, (ROOT / file).read_text(encoding="utf-8"))
    ]
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
