"""properties_format: the corners of Java's format; an integration test compares with Java."""

from __future__ import annotations

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.config.loading.properties_format import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb: 2\nc 3\nd\te\nf", {"a": "1", "b": "2", "c": "3", "d": "e", "f": ""}),
        ("a = b = c", {"a": "b = c"}),
        ("a : = b", {"a": "= b"}),
        ("a=value with blanks behind  \t\n", {"a": "value with blanks behind  \t"}),
        ("a=1\ra=2\r\na=3", {"a": "3"}),
        ("# a=1\n  ! b=2\n\n \t\f\nc=#3", {"c": "#3"}),
        ("a=1\\\n   2\\\r\n\t3", {"a": "123"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("# no continuation \\\na=1", {"a": "1"}),
        ("a=even\\\\\nb=1", {"a": "even\\", "b": "1"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("\\\n#a\nb=1", {"b": "1"}),
        ("a=1\\", {"a": "1"}),
        ("\\\n", {"": ""}),
        ("=x", {"": "x"}),
        (r"a\ b\=\:\#=c\td\ne\\f\z", {"a b=:#": "c\td\ne\\fz"}),
        (r"\u0061=\u00E4\ud83d\ude00", {"a": "ä😀"}),
        ("größe=😀", {"größe": "😀"}),
        ("a=x\u2028y\x85z\x0b", {"a": "x\u2028y\x85z\x0b"}),
        (r"a=\\u12", {"a": r"\u12"}),
        ("", {}),
    ],
)
def test_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    """Separators, blanks, comments, continuations, escapes and line ends, as Java has them."""
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=1\nb=\\u12 secret", "line 2 holds a malformed \\u escape"),
        ("a=\\\n\\\n\\\\\\uwxyz", "line 1 holds a malformed \\u escape"),
        ("a=1\n\nb=\\ud83d", "line 3 holds half of a surrogate pair"),
        ("a=\\ude00\\ud83d", "line 1 holds half of a surrogate pair"),
    ],
)
def test_a_malformed_entry_is_reported_with_its_line(text: str, message: str) -> None:
    """The line's number is named, and nothing of its text, which may be a secret."""
    with pytest.raises(WireError) as caught:
        parse_properties(text)
    assert str(caught.value) == message


@given(st.dictionaries(st.text(), st.text()), st.booleans())
def test_written_keys_and_values_are_read_again(values: dict[str, str], ascii_only: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    """Any keys and values, as another implementation of the format writes them."""
    text = javaproperties.dumps(values, ensure_ascii=ascii_only)
    assert parse_properties(text) == values
