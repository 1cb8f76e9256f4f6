"""Placement messages: bytes, and what is made of what others wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.metadata import coordinator_stream_message as wire
from homeport.job_coordinator.metadata.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.coordinator_stream_message import Namespace
from homeport.job_coordinator.metadata.placement import (
    PlacementManager,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementResponse,
    PlacementSource,
    PlacementStatus,
)

_UUID = "0e4bd3e5-9a1e-4f0c-8d51-2f6f6c7e2b11"
_REQUEST = PlacementRequest(_UUID, "run-1", ProcessorId("0"), "h2", 30_000, 1_700_000_000_000)
_DONE = PlacementResponse(_REQUEST, PlacementStatus.SUCCEEDED, "größe", 1_700_000_000_001)
_BYTES = (
    '{"processorId":"0","deploymentId":"run-1","requestExpiry":30000,'
    '"subType":"ContainerPlacementRequestMessage",'
    f'"uuid":"{_UUID}","destinationHost":"h2","statusCode":"CREATED","timestamp":1700000000000}}'
).encode()


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()


def _manager(stream: InMemoryCoordinatorStream) -> PlacementManager:
    stream.catch_up()
    return PlacementManager(stream)


def test_a_request_has_samzas_bytes() -> None:
    """Reference 4.9, "field order"; without an expiry the field is left out."""
    assert encode_request(_REQUEST) == _BYTES
    unlimited = replace(_REQUEST, expiry_ms=None)
    assert encode_request(unlimited) == _BYTES.replace(b'"requestExpiry":30000,', b"")
    assert decode_request(_BYTES) == _REQUEST
    assert decode_request(encode_request(unlimited)) == unlimited


def test_a_final_answer_has_samzas_fields_and_no_other() -> None:
    """What was asked for, then how it ended, in words, and when that was said."""
    assert encode_response(_DONE).decode() == (
        '{"processorId":"0","deploymentId":"run-1","requestExpiry":30000,'
        '"subType":"ContainerPlacementResponseMessage","responseMessage":"größe",'
        f'"uuid":"{_UUID}","destinationHost":"h2","statusCode":"SUCCEEDED",'
        '"timestamp":1700000000001}'
    )
    # when it was asked for is of no use to anybody any more
    asked = replace(_REQUEST, timestamp_ms=_DONE.timestamp_ms)
    assert decode_response(encode_response(_DONE)) == replace(_DONE, request=asked)


@pytest.mark.parametrize(
    "source", [None, PlacementSource(3, Host("h1")), PlacementSource(0, None)], ids=str
)
def test_an_answer_under_way_tells_the_next_driver_all(source: PlacementSource | None) -> None:
    """When it was asked for, and where the container was: read back as written."""
    for status in (PlacementStatus.ACCEPTED, PlacementStatus.IN_PROGRESS):
        response = replace(_DONE, status=status, source=source)
        assert decode_response(encode_response(response)) == response


def test_requests_come_in_the_order_of_their_timestamps(stream: InMemoryCoordinatorStream) -> None:
    """Not of their writing; a deleted one does not come, nor does an answer."""
    late = replace(_REQUEST, uuid="b", timestamp_ms=2)
    early, gone = replace(late, uuid="c", timestamp_ms=1), replace(late, uuid="d")
    stream.write(map(PlacementManager.request_message, (late, gone, early)))
    stream.write([PlacementManager.request_deleted("d"), PlacementManager.response_message(_DONE)])
    manager = _manager(stream)
    assert manager.read_requests() == ((early, ""), (late, ""))
    assert list(manager.read_responses()) == [_UUID]
    stream.write([PlacementManager.response_deleted(_UUID)])
    assert _manager(stream).read_responses() == {}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"no json", "not JSON"),
        (b"[]", "not a JSON object"),
        (_BYTES.replace(b"RequestMessage", b"ResponseMessage"), "'subType'"),
        (_BYTES.replace(b'"processorId":"0",', b""), "'processorId'"),
        (_BYTES.replace(b'"h2"', b"null"), "'destinationHost'"),
        (_BYTES.replace(b"30000", b'"soon"'), "'requestExpiry'"),
        (_BYTES.replace(_UUID.encode(), b"another"), "'uuid' is not its key's"),
    ],
    ids=lambda value: value.decode()[-30:] if isinstance(value, bytes) else value,
)
def test_a_damaged_request_can_be_refused(
    stream: InMemoryCoordinatorStream, value: bytes, fault: str
) -> None:
    """It is found by its key, with what is wrong with it."""
    key = f"{_UUID}.ContainerPlacementRequestMessage"
    stream.write([wire.of_namespace(Namespace.PLACE_CONTAINER, key, value)])
    ((request, found),) = _manager(stream).read_requests()
    assert request.uuid == _UUID
    assert fault in found


def test_damaged_answers_are_left_out(stream: InMemoryCoordinatorStream) -> None:
    """Whoever wrote them."""
    written = encode_response(_DONE)
    for value in (b"{}", written.replace(b"SUCCEEDED", b"SPLENDID")):
        with pytest.raises(WireError):
            decode_response(value)
        key = f"{_UUID}.ContainerPlacementResponseMessage"
        stream.write([wire.of_namespace(Namespace.PLACE_CONTAINER, key, value)])
        assert _manager(stream).read_responses() == {}
