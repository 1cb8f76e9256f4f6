"""The format of Java's properties files, read as ``java.util.Properties.load`` reads it.

PURE. Logical lines are joined from natural ones that end in an odd number of backslashes; a key
ends at the first ``=``, ``:`` or white space that no backslash protects; white space after the
separator is skipped, at the end of a value it is kept; the last of equal keys wins.
"""

import re
from collections.abc import Iterator

from homeport.config.errors import WireError

_BLANKS = " \t\f"
_NATURAL_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CHARACTERS = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}
_MALFORMED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_properties(text: str) -> dict[str, str]:
    """Return the keys and values of ``text``, which is what a properties file holds.

    WireError: a malformed escape, or half of a pair of them, which no UTF-8 can carry. The message
    names the line and nothing that stands in it.
    """
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        end = key.end() if key else 0
        separator = _SEPARATOR.match(line, end)
        value = line[separator.end() if separator else end :]
        found[_unescaped(line[:end], number)] = _unescaped(value, number)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line that is no comment and not blank, with its first line's number.

    Two corners are Java's own: where a line is empty up to its continuation, the next one may still
    be a comment; and a lone backslash at the very end of the text is a line that holds nothing.
    """
    line, first = "", 0
    for number, match in enumerate(_NATURAL_LINE.finditer(text), 1):
        content = match[1].lstrip(_BLANKS)
        if not line and content.startswith(("#", "!")):
            first = 0
            continue
        is_continued = (len(content) - len(content.rstrip("\\"))) % 2 == 1
        line += content[:-1] if is_continued else content
        first = first or number
        if is_continued and match.end() < len(text):
            continue
        if line or (is_continued and match[2] != "\r\n"):
            yield first, line
        line, first = "", 0


def _unescaped(text: str, line_number: int) -> str:
    """Replace the escapes of ``text``; two halves of a surrogate pair become one character."""
    if "\\" not in text:
        plain = text
    elif _MALFORMED.search(text):
        raise WireError(f"line {line_number} holds a malformed \\u escape")
    else:
        plain = _ESCAPE.sub(_character, text)
    if _SURROGATE.search(plain):
        # Only UTF-16 knows halves of characters.
        try:
            return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise WireError(f"line {line_number} holds half of a surrogate pair") from None
    return plain


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _CHARACTERS.get(escape, escape)
