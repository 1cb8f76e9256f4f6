"""Samza's own ContainerPlacementMetadataStore and ours on one coordinator stream."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from samza_streams import Stream
from topic_records import topic_records

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

_ASKED_MS = 1_700_000_000_000


@pytest.mark.parametrize("expiry_ms", [None, 30_000])
def test_both_write_the_same_bytes(stream: Stream, expiry_ms: int | None) -> None:
    """C9: what Samza's store writes, ours reads, and would have written byte for byte."""
    stream.open()
    stream.samza.ask("placement", ["run-1", "0", "nm2"])
    stream.samza.ask("ask-placement", ["run ä", "0-0", "LAST_SEEN", expiry_ms, _ASKED_MS])
    records = [value for _, value in topic_records(stream.servers, stream.topic)]
    first, answer, second = [value for value in records if value is not None]
    for value in (first, second):
        assert encode_request(decode_request(value)) == value
    assert encode_response(decode_response(answer)) == answer
    assert decode_request(second).expiry_ms == expiry_ms
    with stream.store() as store:
        store.bootstrap()
        manager = PlacementManager(store)
        assert [fault for _, fault in manager.read_requests()] == ["", ""]
        (stated,) = manager.read_responses().values()
    assert (stated.status, stated.message) == (PlacementStatus.SUCCEEDED, "größe")


def test_samzas_store_reads_and_deletes_what_ours_writes(stream: Stream) -> None:
    """C9: our field beside Samza's is passed over; a request that was taken is gone for both."""
    request = PlacementRequest(
        str(uuid.uuid4()), "run-1", ProcessorId("0"), "nm2", 30_000, _ASKED_MS
    )
    response = PlacementResponse(
        request,
        PlacementStatus.IN_PROGRESS,
        "größe",
        _ASKED_MS + 5,
        PlacementSource(3, Host("nm1")),
    )
    stream.write([PlacementManager.request_message(request)])
    assert _seen(stream, request) == [True, None]
    stream.write(
        [
            PlacementManager.request_deleted(request.uuid),
            PlacementManager.response_message(response),
        ],
        driver=True,
    )
    for status in (PlacementStatus.IN_PROGRESS, PlacementStatus.SUCCEEDED):
        stated = replace(response, status=status)
        stream.write([PlacementManager.response_message(stated)], driver=True)
        asked, answer = _seen(stream, request)
        assert asked is None
        assert isinstance(answer, str)
        assert f"statusCode={status}" in answer
        assert "responseMessage='größe'" in answer
        assert "requestExpiry=PT30S" in answer
    stream.samza.ask("forget-placement", request.uuid)
    assert _seen(stream, request) == [None, None]
    assert stream.ours("samza-place-container-v1") == {}


def _seen(stream: Stream, request: PlacementRequest) -> list[object]:
    """Whether Samza finds the request as we wrote it, or None; and the answer in its words."""
    stream.open()
    asked, answer = stream.samza.ask("placement-messages", request.uuid)
    if asked is not None:
        asked = f"UUID: {request.uuid}, Processor ID: 0, deploymentId='run-1'" in asked
    return [asked, answer]
