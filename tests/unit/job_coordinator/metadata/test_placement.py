"""Placement messages: bytes, and what is made of what others wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import Namespace
from homeport.job_coordinator.metadata.placement import (
    PlacementManager,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import (
    MAX_TEXT,
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


def test_a_warm_move_has_a_field_of_ours() -> None:
    """At the end of the request, and of each answer but the final one."""
    warm = replace(_REQUEST, is_warm=True)
    assert encode_request(warm) == _BYTES[:-1] + b',"homeport":{"warm":true}}'
    assert decode_request(encode_request(warm)) == warm
    drain = replace(warm, is_drain=True)
    assert encode_request(drain) == _BYTES[:-1] + b',"homeport":{"warm":true,"drain":true}}'
    assert decode_request(encode_request(drain)) == drain
    accepted = replace(_DONE, request=drain, status=PlacementStatus.ACCEPTED)
    assert decode_response(encode_response(accepted)).request.is_drain
    begun = replace(_DONE, request=warm, status=PlacementStatus.IN_PROGRESS)
    assert decode_response(encode_response(begun)) == begun
    final = replace(_DONE, request=warm)
    assert encode_response(final) == encode_response(_DONE)


def test_a_final_answer_has_samzas_fields_and_no_other() -> None:
    """The request, then its result in words, and the time of the answer."""
    assert encode_response(_DONE).decode() == (
        '{"processorId":"0","deploymentId":"run-1","requestExpiry":30000,'
        '"subType":"ContainerPlacementResponseMessage","responseMessage":"größe",'
        f'"uuid":"{_UUID}","destinationHost":"h2","statusCode":"SUCCEEDED",'
        '"timestamp":1700000000001}'
    )
    # the time of the request is of no use any more
    asked = replace(_REQUEST, timestamp_ms=_DONE.timestamp_ms)
    assert decode_response(encode_response(_DONE)) == replace(_DONE, request=asked)


@pytest.mark.parametrize(
    "source", [None, PlacementSource(3, Host("h1")), PlacementSource(0, None)], ids=str
)
def test_an_answer_under_way_gives_the_next_driver_all(source: PlacementSource | None) -> None:
    """The time of the request, and the place of the container: read back as written."""
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
    """Whichever writer they come from; those behind them are read."""
    written, key = encode_response(_DONE), PlacementManager.response_message(_DONE).key
    for value in (b"{}", b"no json", written.replace(b"SUCCEEDED", b"SPLENDID")):
        with pytest.raises(WireError):
            decode_response(value)
        stream.write([wire.of_namespace(Namespace.PLACE_CONTAINER, f"a{key}", value)])
        assert _manager(stream).read_responses() == {}
    stream.write([PlacementManager.response_message(_DONE)])
    assert list(_manager(stream).read_responses()) == [_UUID]


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        (replace(_REQUEST, expiry_ms=10**400), "the expiry must be from 1 to 86400000 ms"),
        (replace(_REQUEST, expiry_ms=-(10**400)), "the expiry must be from 1 to 86400000 ms"),
        (replace(_REQUEST, expiry_ms=86_400_001), "the expiry must be from 1 to 86400000 ms"),
        (replace(_REQUEST, timestamp_ms=10**400), "the timestamp must be from 0"),
        (replace(_REQUEST, timestamp_ms=-1), "the timestamp must be from 0"),
        (replace(_REQUEST, deployment_id="x" * 600_000), "deploymentId has 600000 characters"),
        (replace(_REQUEST, processor_id=ProcessorId("x" * 201)), "processorId has 201 characters"),
        (replace(_REQUEST, destination="x" * 201), "destinationHost has 201 characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_malformed_request_gets_a_short_answer(
    stream: InMemoryCoordinatorStream, request_: PlacementRequest, fault: str
) -> None:
    """Before anything is done: every answer to it has room in any topic."""
    stream.write([PlacementManager.request_message(request_)])
    ((read, found),) = _manager(stream).read_requests()
    assert found.startswith(fault)
    assert read.uuid == _UUID
    answer = PlacementResponse(read, PlacementStatus.BAD_REQUEST, found, 1)
    _, value = wire.encode(PlacementManager.response_message(answer))
    assert value is not None
    assert len(value) < 2_000
    assert decode_response(value) == replace(answer, request=replace(read, timestamp_ms=1))


def test_a_value_in_its_range_stays_unchanged() -> None:
    """Texts of 200 characters, the longest expiry, any time since 1970."""
    most = replace(_REQUEST, deployment_id="x" * 200, expiry_ms=86_400_000, timestamp_ms=2**63 - 1)
    for request in (_REQUEST, most, replace(_REQUEST, expiry_ms=1, timestamp_ms=0)):
        assert request.fault == ""
        assert request.in_brief() == request


def test_an_action_that_cannot_go_on_is_reported_with_its_fault(
    stream: InMemoryCoordinatorStream,
) -> None:
    """An older driver took it up; one whose answer is not under its own key is left out."""
    begun = PlacementResponse(_REQUEST, PlacementStatus.IN_PROGRESS, "", 1)
    beyond = replace(begun, request=replace(_REQUEST, uuid="v", expiry_ms=10**400))
    stream.write(map(PlacementManager.response_message, (begun, beyond)))
    key = "w.ContainerPlacementResponseMessage"
    stream.write([wire.of_namespace(Namespace.PLACE_CONTAINER, key, encode_response(begun))])
    (first, fine), (second, fault) = _manager(stream).unfinished()
    assert (first, fine) == (begun, "")
    assert second == replace(beyond, request=replace(beyond.request, expiry_ms=None))
    assert fault.startswith("the expiry must be")


def test_only_an_answer_is_an_answer() -> None:
    """Neither a request, nor a tombstone, nor a record of another type."""
    assert PlacementManager.is_answer(PlacementManager.response_message(_DONE))
    assert not PlacementManager.is_answer(PlacementManager.response_deleted(_UUID))
    assert not PlacementManager.is_answer(PlacementManager.request_message(_REQUEST))
    answer = PlacementManager.response_message(_DONE)
    assert not PlacementManager.is_answer(wire.set_config(answer.key, "1"))


def test_a_uuid_of_the_longest_length_is_read_and_answered(
    stream: InMemoryCoordinatorStream,
) -> None:
    """One letter more, and no answer could have such a key."""
    longest = replace(_REQUEST, uuid="u" * MAX_TEXT)
    beyond = replace(_REQUEST, uuid="u" * (MAX_TEXT + 1))
    stream.write(map(PlacementManager.request_message, (longest, beyond)))
    answers = (replace(_DONE, request=request) for request in (longest, beyond))
    stream.write(map(PlacementManager.response_message, answers))
    manager = _manager(stream)
    assert [request.uuid for request, _ in manager.read_requests()] == [longest.uuid]
    assert manager.unanswerable() == (beyond.uuid,)
    assert list(manager.read_responses()) == [longest.uuid]
