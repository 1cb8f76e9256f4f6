"""Text that a terminal only shows, and does not act on.

PURE. Values come from topics, pages and files that others may write: an escape in one may clear the
screen, rename the window or hide a line.
"""

import json
from collections.abc import Iterable


def printable(text: str, keeps: str = "") -> str:
    r"""Return ``text`` with each character that is not printable as JSON escapes it, as ``\u001b``.

    Among them are line breaks, and characters without width or against the direction of reading.
    Those in ``keeps`` stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keeps else json.dumps(c)[1:-1] for c in text)


def printable_lines(texts: Iterable[str]) -> str:
    """Return ``texts`` as so many lines, whatever line breaks are in them."""
    return "\n".join(map(printable, texts))
