"""The text of ADJUNCT-META."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.errors import WireError
from homeport.container.adjunct.recovery import AdjunctMeta, meta_text, parse_meta
from homeport.container.progress.clock_reading import NEVER, ClockReading

_META = AdjunctMeta(
    "kafka.planes", "idé", "my_job:Models", ClockReading(7, "boot", 3), kept_ms=86_400_000
)


def test_what_is_written_is_read() -> None:
    """As it was, whatever the names are."""
    text = meta_text(_META)
    assert text == (
        '{"stream":"kafka.planes","topic_id":"idé","extractor":"my_job:Models",'
        '"at_head":{"wall_ms":7,"boot_id":"boot","boot_ms":3},"kept_ms":86400000,"version":1}'
    )
    assert parse_meta(text) == _META
    for meta in (replace(_META, kept_ms=None), replace(_META, forms=("string", "avro 7f"))):
        assert parse_meta(meta_text(meta)) == meta


def test_a_directory_of_before_does_not_say_when_it_was_at_the_head() -> None:
    """It is judged where its stream is compacted."""
    text = '{"stream":"kafka.planes","topic_id":"id","extractor":"","version":1}'
    assert parse_meta(text) == AdjunctMeta("kafka.planes", "id", "", NEVER, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        meta_text(_META).replace("1}", '"1"}'),
        meta_text(_META).replace("1}", "true}"),
        meta_text(_META).replace('"my_job:Models"', "7"),
        meta_text(_META).replace('"boot"', "7"),
        meta_text(_META).replace("wall_ms", "wall"),
        meta_text(_META).replace(":3}", ":3.5}"),
        meta_text(_META).replace(":3}", ':"3"}'),
        meta_text(_META).replace("86400000", '"86400000"'),
        meta_text(_META).replace("86400000", "true"),
        meta_text(replace(_META, at_head=NEVER)).replace('"wall_ms":0', '"wall_ms":null'),
        meta_text(_META).replace("1}", '1,"forms":["string"]}'),
        meta_text(_META).replace("1}", '1,"forms":["string",7]}'),
        meta_text(_META).replace("1}", '1,"forms":7}'),
        "[" * 100_000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """With what it holds, as far as that fits."""
    with pytest.raises(WireError, match="which is not an ADJUNCT-META") as caught:
        parse_meta(text)
    assert len(str(caught.value)) < 300
