"""Which serde makes columns for which frames of a pipeline."""

from __future__ import annotations

import pyarrow as pa
import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.input_serdes import InputSerde, input_serdes
from homeport.config.system_stream import SystemStream
from homeport.container.spark.frame_columns import serdes_of_frames, value_columns
from homeport.container.spark.inputs import WHOLE

A, B, C = (SystemStream("kafka", name) for name in "abc")
FRAMES = {"a": A, "b": B, "c": C}
SCHEMAS = {"s": "n INT", "t": "m STRING"}


def _inputs(*serdes: str, **more: str) -> tuple[InputSerde, ...]:
    """Those of the inputs a, b, c; empty for none."""
    values = {
        "job.name": "j",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
        "task.inputs": ",".join(f"kafka.{s}" for s, _ in zip("abc", serdes, strict=False)),
    }
    for name, schema in SCHEMAS.items():
        values |= {
            f"serializers.registry.{name}.class": "json",
            f"serializers.registry.{name}.schema": schema,
        }
    of = "systems.kafka.streams.{}.samza.msg.serde"
    named = {of.format(s): n for s, n in zip("abc", serdes, strict=False) if n}
    return input_serdes(Config(values | named | more))


def test_inputs_alike_are_one_column() -> None:
    """For one frame and for several."""
    inputs = _inputs("s", "s")
    for takes in (WHOLE, FRAMES):
        assert serdes_of_frames(inputs, takes) == {None: inputs[0]}
    found = value_columns(inputs, FRAMES)
    assert {s: c.type for s, c in found.items()} == dict.fromkeys(
        FRAMES.values(), pa.struct([("n", pa.int32())])
    )
    assert [c.type for c in value_columns(inputs, WHOLE).values()] == [
        pa.struct([("n", pa.int32())])
    ]


def test_each_stream_of_frames_may_have_its_own_serde_or_none() -> None:
    """What has no schema stays bytes."""
    inputs = _inputs("s", "t", "string")
    assert serdes_of_frames(inputs, FRAMES) == {A: inputs[0], B: inputs[1]}
    found = value_columns(inputs, FRAMES)
    assert {s: c.type.field(0).name for s, c in found.items()} == {A: "n", B: "m"}
    assert serdes_of_frames(_inputs("", "string"), FRAMES) == {}
    assert value_columns(_inputs("", ""), WHOLE) == {}
    assert serdes_of_frames((), FRAMES) == {}


def test_one_frame_of_all_has_one_type() -> None:
    """Also where a frame of each stream is there too; the line says what to do."""
    line = (
        r"streams\.b\.samza\.msg\.serde = 't': this pipeline takes the values of all inputs in one "
        r"column, and those of a have the serde 's'; give all inputs the same serde, or none a "
        "schema, or let the pipeline take a frame of each stream"
    )
    for takes in (WHOLE, {**FRAMES, "input": None}):
        with pytest.raises(ConfigError, match=line):
            serdes_of_frames(_inputs("s", "t"), takes)


def test_the_registrys_own_schemas_are_of_their_streams() -> None:
    """So frames of each have two serdes, and one frame cannot have them."""
    of = "serializers.registry.s."
    registry = {of + "class": "avro", of + "schema": "", of + "schema.registry.url": "http://r"}
    inputs = _inputs("s", "s", **registry)
    assert serdes_of_frames(inputs, FRAMES) == {A: inputs[0], B: inputs[1]}
    with pytest.raises(ConfigError, match="the values of a, b are one column"):
        serdes_of_frames(inputs, WHOLE)
