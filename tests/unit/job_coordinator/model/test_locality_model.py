"""LocalityModel and its JSON form."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.locality_model import (
    LocalityModel,
    ProcessorLocality,
    decode_locality,
    encode_locality,
    encode_processor_locality,
)

GOLDEN = (
    b'{"processor-localities":{"0":{"id":"0","host":"h1","jmx-url":"","jmx-tunneling-url":""}}}'
)
MODEL = LocalityModel.of({ProcessorId("0"): Host("h1")})


def test_bytes_are_those_of_samza() -> None:
    """All localities, and one alone, have the reference's bytes."""
    assert encode_locality(MODEL) == GOLDEN
    one = encode_processor_locality(MODEL.processor_localities[ProcessorId("0")])
    assert one == b'{"id":"0","host":"h1","jmx-url":"","jmx-tunneling-url":""}'


def test_samzas_bytes_give_the_model() -> None:
    """Reading gives the model back; a field that is not known is ignored."""
    assert decode_locality(GOLDEN) == MODEL
    assert decode_locality(GOLDEN.replace(b'"id"', b'"new":1,"id"')) == MODEL


def test_no_localities() -> None:
    """A job that never ran has an empty map."""
    assert encode_locality(LocalityModel.of({})) == b'{"processor-localities":{}}'


def test_an_unknown_processor_has_an_empty_host() -> None:
    """A processor without locality answers with its own id and no host."""
    unknown = ProcessorLocality(ProcessorId("7"), None)
    assert encode_processor_locality(unknown) == (
        b'{"id":"7","host":"","jmx-url":"","jmx-tunneling-url":""}'
    )
    read = decode_locality(b'{"processor-localities":{"7":{"id":"7","host":""}}}')
    assert read.processor_localities[ProcessorId("7")] == unknown


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b'{"processor-localities":{"0":7}}',
        b'{"processor-localities":{"0":{"id":"0"}}}',
        b'{"processor-localities":{"0":{"host":"h"}}}',
    ],
)
def test_a_strange_body_is_refused(data: bytes) -> None:
    """Every missing or wrong part is a WireError."""
    with pytest.raises(WireError):
        decode_locality(data)
