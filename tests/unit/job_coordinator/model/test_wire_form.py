"""JSON by the types of its fields: what is read of bytes, and what is refused."""

from __future__ import annotations

import pytest
from golden_values import STATUS

from homeport.config.errors import WireError
from homeport.job_coordinator.model.wire_form import decoded, json_text
from homeport.job_coordinator.status.shape import ShownStatus


def test_bytes_give_the_value_that_was_written() -> None:
    """Fields of a later version are passed over."""
    text = json_text(STATUS)
    assert decoded(ShownStatus, text.encode(), "the status") == STATUS
    later = text.replace("{", '{"later":[{}],', 1)
    assert decoded(ShownStatus, later.encode(), "the status") == STATUS


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "is not JSON: .* truncated"),
        (b"{]", "is not JSON: JSON is malformed"),
        (b"[]", r"Expected `object`, got `array`"),
        (b'{"job":{"attempt":"1"}}', r"Expected `int \| null`, got `str` - at `\$\.job\.attempt`"),
        (b'{"job":{"name":"\\ud800"}}', "truncated"),
        (b'{"job":{"name":"\xff"}}', "can't decode byte 0xff"),
        (b'{"configuration":{"inputs_begun_anew":%s' % (b"[" * 100_000), "recursion"),
        (b'{"job":{"attempt":NaN}}', "JSON is malformed"),
    ],
)
def test_other_bytes_are_one_line(data: bytes, fault: str) -> None:
    """It begins with what was read, and has the path of the field."""
    with pytest.raises(WireError, match=f"^the status.*{fault}") as caught:
        decoded(ShownStatus, data, "the status")
    assert "\n" not in str(caught.value)
