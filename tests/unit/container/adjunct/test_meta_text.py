"""The text of ADJUNCT-META."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.container.adjunct.meta_text import meta_text, parse_meta
from homeport.container.adjunct.recovery import AdjunctMeta

_META = AdjunctMeta("kafka.planes", "idé", "my_job:Models")


def test_what_is_written_is_read() -> None:
    """As it was, whatever the names are."""
    text = meta_text(_META)
    assert text == (
        '{"stream":"kafka.planes","topic_id":"idé","extractor":"my_job:Models","version":1}'
    )
    assert parse_meta(text) == _META


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        meta_text(_META).replace("1}", '"1"}'),
        meta_text(_META).replace("1}", "true}"),
        meta_text(_META).replace('"my_job:Models"', "7"),
        "[" * 100_000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """With what it holds, as far as that fits."""
    with pytest.raises(WireError, match="which says no owner of a store") as caught:
        parse_meta(text)
    assert len(str(caught.value)) < 300
