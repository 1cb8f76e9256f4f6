"""Rules for the pages of a repository.

Links lead somewhere, named modules exist, links lead to every page, no page is long.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pages_check.generated import Finding
from pages_check.markdown import Link, anchors, links, named_modules

FRONT = "README.md"
"""Where a reader begins."""
_KB = 1024
_LIMITS = (
    (re.compile(r"README\.md"), 8 * _KB),
    (re.compile(r"docs/.+\.md"), 12 * _KB),
    (re.compile(r"CONTRIBUTING\.md"), 12 * _KB),
    (re.compile(r"[^/]+/README\.md"), 5 * _KB),
)
_OTHER_SITE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_SOURCE_LINE = re.compile(r"L\d+(?:-L\d+)?")


@dataclass(frozen=True)
class Tree:
    """The files of a repository, by path from its root, and the text of its pages."""

    files: Collection[str]
    pages: Mapping[str, str]

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds a file, at any depth."""
        found = {""}
        for file in self.files:
            while file := posixpath.dirname(file):
                found.add(file)
        return frozenset(found)

    @cached_property
    def endings(self) -> frozenset[str]:
        """Every path from a folder of the repository down to a file, shortest included."""
        parts = [file.split("/") for file in self.files]
        return frozenset("/".join(p[n:]) for p in parts for n in range(len(p)))

    @cached_property
    def links(self) -> Mapping[str, tuple[Link, ...]]:
        """{page: its links within the repository}."""
        return {
            page: tuple(link for link in links(text) if not _OTHER_SITE.match(link.target))
            for page, text in self.pages.items()
        }

    @cached_property
    def anchors(self) -> Mapping[str, set[str]]:
        """{page: its anchors}."""
        return {page: anchors(text) for page, text in self.pages.items()}

    def target(self, page: str, link: Link) -> tuple[str, str]:
        """(file or folder, anchor) that a link names; the page of a folder is its README."""
        path, _, anchor = link.target.partition("#")
        if not path:
            return page, anchor
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        readme = posixpath.join(target, "README.md")
        if readme in self.pages:
            return readme, anchor
        return "" if target == "." else target, anchor


def findings(tree: Tree) -> Iterator[Finding]:
    """What is wrong with the pages, rule by rule."""
    yield from _dead_links(tree)
    yield from _dead_modules(tree)
    yield from _lost_pages(tree)
    yield from _long_pages(tree)


def _dead_links(tree: Tree) -> Iterator[Finding]:
    for page, own in tree.links.items():
        for link in own:
            fault = _link_fault(tree, page, link)
            if fault:
                yield Finding(page, link.line, *fault)


def _link_fault(tree: Tree, page: str, link: Link) -> tuple[str, str] | None:
    """(fault, remedy); None where the link leads somewhere."""
    if link.target.startswith("/"):
        return f"link to {link.target} begins at no page", "write it relative to this page"
    target, anchor = tree.target(page, link)
    if target not in tree.files and target not in tree.folders:
        return f"link to {link.target}, which does not exist", "name a file of this repository"
    if target not in tree.pages:
        if anchor and not (target in tree.files and _SOURCE_LINE.fullmatch(anchor)):
            return f"link to {link.target}, which has no anchors", f"leave out #{anchor}"
    elif anchor and anchor not in tree.anchors[target]:
        return f"link to {link.target}, but {target} has no anchor {anchor}", "name one that it has"
    return None


def _dead_modules(tree: Tree) -> Iterator[Finding]:
    """Named modules of this repository that have moved or gone; not a job's own modules."""
    names = {name for folder in tree.folders for name in folder.split("/")}
    for page, text in tree.pages.items():
        for module in named_modules(text):
            ours = module.target.partition("/")[0] in names
            if ours and module.target not in tree.endings:
                fault = f"names {module.target}, which does not exist"
                yield Finding(page, module.line, fault, "name the module that does this now")


def _lost_pages(tree: Tree) -> Iterator[Finding]:
    found, new = {FRONT}, [FRONT]
    while new:
        page = new.pop()
        for link in tree.links.get(page, ()):
            target, _ = tree.target(page, link)
            if target in tree.pages and target not in found:
                found.add(target)
                new.append(target)
    for page in sorted(tree.pages.keys() - found):
        yield Finding(page, 1, f"no links lead from {FRONT} to this page", "link to it, or drop it")


def _long_pages(tree: Tree) -> Iterator[Finding]:
    for page, text in tree.pages.items():
        size = len(text.encode())
        limit = next((limit for name, limit in _LIMITS if name.fullmatch(page)), size)
        if size > limit:
            fault = f"{size} bytes, {size - limit} over its limit of {limit // _KB} KB"
            yield Finding(page, _line_at(text, limit), fault, "shorten it, or split it")


def _line_at(text: str, size: int) -> int:
    return text.encode()[:size].count(b"\n") + 1
