"""Style and structure of the whole tree, as CI judges it. Run by scripts/check."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BIN = Path(sys.executable).parent
_TYPED = ("build/ns/homeport", "tests", "scripts", "examples")
"""Packages under their import names: mypy must see homeport.config, not config."""

_ABOUT = """\
Runs ruff (rules and format), mypy --strict, import-linter, the tidy test, and the checks of words
and pages, all of them even if one fails. Prints one line per tool, and all output of those that
failed. Exit code 0: clean."""


@dataclass(frozen=True)
class Tool:
    """One command whose exit code is its verdict."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """How a tool ended."""

    tool: Tool
    code: int
    output: str
    seconds: float


def _tools(paths: Sequence[str]) -> list[Tool]:
    """All tools, slowest first; with ``paths`` only those that can look at single files."""
    targets = tuple(paths) or (".",)
    mypy = [Tool("mypy", (str(_BIN / "mypy"), *_mypy_targets(paths)))]
    ruff = [
        Tool("ruff check", (str(_BIN / "ruff"), "check", "--output-format", "concise", *targets)),
        Tool(
            "ruff format",
            (str(_BIN / "ruff"), "format", "--check", "--output-format", "concise", *targets),
        ),
    ]
    if paths:
        return mypy + ruff
    pytest = (sys.executable, "-m", "pytest", "-q", "--no-header", "tests/unit/test_tidy.py")
    return [
        *mypy,
        Tool("tidy test", pytest),
        Tool("prose", (sys.executable, "scripts/prose_check.py")),
        Tool("pages", (sys.executable, "scripts/pages_main.py")),
        Tool("import-linter", (str(_BIN / "lint-imports"), "--verbose")),
        *ruff,
    ]


def _mypy_targets(paths: Sequence[str]) -> tuple[str, ...]:
    if paths:
        code = ("appmaster/", "config/", "container/", "job_coordinator/", "local_cluster/")
        roofed = tuple(f"build/ns/{p}" if p.startswith("homeport/") else p for p in paths)
        return tuple(f"build/ns/homeport/{p}" if p.startswith(code) else p for p in roofed)
    return _TYPED


def _judge(tool: Tool) -> Verdict:
    start = time.monotonic()
    links = str(ROOT / "build" / "ns")
    done = subprocess.run(
        tool.command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": links},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Verdict(tool, done.returncode, done.stdout, time.monotonic() - start)


def _fix(paths: Sequence[str]) -> None:
    """Let ruff repair what it can; the verdicts after it say what is left."""
    targets = tuple(paths) or (".",)
    for arguments in (("check", "--quiet", "--exit-zero", "--fix"), ("format", "--quiet")):
        subprocess.run([str(_BIN / "ruff"), *arguments, *targets], cwd=ROOT, check=False)


def main() -> int:
    """Exit code: 0 if every tool is content."""
    parser = argparse.ArgumentParser(prog="scripts/check", description=_ABOUT)
    parser.add_argument("--fix", action="store_true", help="let ruff repair what it can, first")
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="only these files or folders, from the root (ruff and mypy only)",
    )
    options = parser.parse_args()
    if options.fix:
        _fix(options.paths)
    failed = []
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for verdict in pool.map(_judge, _tools(options.paths)):
            word = "ok" if verdict.code == 0 else "FAILED"
            print(f"{verdict.tool.name}: {word} ({verdict.seconds:.1f} s)", flush=True)
            if verdict.code != 0:
                failed.append(verdict.tool.name)
                print(verdict.output.rstrip(), flush=True)
    if failed:
        print(f"scripts/check: {', '.join(failed)} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
