"""The pages of the repository: checked, and the generated ones written. Run by scripts/pages."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from pages_check.generated import generated, stale, write
from pages_check.page_rules import Tree, findings

ROOT = Path(__file__).resolve().parents[1]
_ABOUT = """\
Checks all Markdown pages: dead links and anchors, pages that no links lead to from README.md, stale
generated pages, pages over their size. Prints one line per finding. Exit code 0: no findings."""


def tree(root: Path) -> Tree:
    """The files that git keeps, or would keep, below ``root``."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = {name for name in listed.split("\0") if name and (root / name).is_file()}
    pages = {f: (root / f).read_text(encoding="utf-8") for f in sorted(files) if f.endswith(".md")}
    return Tree(files, pages)


def main() -> int:
    """Exit code: 0 if nothing was found, else 1."""
    parser = argparse.ArgumentParser(prog="scripts/pages", description=_ABOUT)
    parser.add_argument("--write", action="store_true", help="write the generated pages first")
    if parser.parse_args().write:
        write(ROOT)
    there = tree(ROOT)
    found = sorted([*findings(there), *stale(generated(), there.pages)])
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
