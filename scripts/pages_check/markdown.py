"""What a Markdown page links to and names, and which anchors it has.

Code blocks, inline code and comments hold neither. Anchors of headings are made as GitHub makes
them: lower case, spaces as hyphens, punctuation dropped, ``-1`` and so on for a repeated heading.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*$")
_INLINE = re.compile(r"\]\(\s*<?((?:[^\s<>()]|\([^\s()]*\))+)>?(?:\s+\"[^\"]*\")?\s*\)")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?(\S+?)>?(?:\s|$)")
_ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
_MODULE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/[\w.-]+\.py)`")
_LINK_TEXT = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_DROPPED = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Link:
    """A link as it is written, and its line."""

    target: str
    line: int


def links(page: str) -> Iterator[Link]:
    """All links of a page, in order, those to other sites included."""
    for number, line in _lines(page, without_code=True):
        for target in [*_DEFINITION.findall(line), *_INLINE.findall(line)]:
            yield Link(target, number)


def named_modules(page: str) -> Iterator[Link]:
    """Inline code that is a path ending in ``.py``, with at least one folder."""
    for number, line in _lines(page, without_code=False):
        for path in _MODULE.findall(line):
            yield Link(path, number)


def anchors(page: str) -> set[str]:
    """All that a link to this page may name after its ``#``."""
    found: set[str] = set()
    headings: Counter[str] = Counter()
    for _, line in _lines(page, without_code=False):
        found.update(_ANCHOR.findall(line))
        heading = _HEADING.match(line)
        if heading:
            slug = _slug(heading[1])
            found.add(f"{slug}-{headings[slug]}" if headings[slug] else slug)
            headings[slug] += 1
    return found


def _slug(heading: str) -> str:
    text = _ANCHOR.sub("", _LINK_TEXT.sub(r"\1", heading)).replace("`", "")
    return _DROPPED.sub("", re.sub(r"</?a>?", "", text).strip().lower()).replace(" ", "-")


def _lines(page: str, *, without_code: bool) -> Iterator[tuple[int, str]]:
    """(number, line) of what is neither comment nor code block; inline code blanked on request."""
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), page)
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence):
            fence = ""
        elif not fence:
            yield number, _CODE.sub("", line) if without_code else line
