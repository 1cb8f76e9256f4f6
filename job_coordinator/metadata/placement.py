"""Placement requests and their answers in the coordinator stream, in Samza's bytes.

Samza keeps both in one namespace, ``<uuid>.ContainerPlacementRequestMessage`` and
``<uuid>.ContainerPlacementResponseMessage``; its classes read and write beside this. An answer
that is not the last one has a field of ours, which Samza's reader passes over: what the next
driver must know to go on with the action. So the request itself can be deleted with the first
answer, in the same transaction, and neither can be lost nor answered twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage, Namespace
from homeport.job_coordinator.coordinator_stream.reading import RecordManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.json_values import (
    as_object,
    compact_json,
    optional_field,
    optional_number,
    parse_object,
    required_field,
    shown,
)
from homeport.job_coordinator.model.placement import (
    MAX_TEXT,
    PlacementRequest,
    PlacementResponse,
    PlacementSource,
    PlacementStatus,
)

_REQUEST = "ContainerPlacementRequestMessage"
_RESPONSE = "ContainerPlacementResponseMessage"
_OWN = "homeport"


def encode_request(request: PlacementRequest) -> bytes:
    """Return the request as Samza's ContainerPlacementMetadataStore writes it, byte for byte.

    A warm move, and one of a drain, has our field at its end: an object with ``warm``, ``drain``.
    """
    fields = _fields(request, _REQUEST, PlacementStatus.CREATED, request.timestamp_ms)
    own = _own_fields(request)
    return compact_json({**fields, _OWN: own} if own else fields)


def _own_fields(request: PlacementRequest) -> dict[str, bool]:
    flags = {"warm": request.is_warm, "drain": request.is_drain}
    return {name: True for name, is_set in flags.items() if is_set}


def encode_response(response: PlacementResponse) -> bytes:
    """Return the answer as Samza writes it, to the byte if final; else with our field at its end.

    That field is an object: ``requested`` when the request was written, ``warm`` of a warm move,
    ``drain`` of one of a drain, and ``epoch`` and ``host`` of the source where that is known.
    """
    request = response.request
    fields = _fields(request, _RESPONSE, response.status, response.timestamp_ms, response.message)
    if not response.status.is_final:
        own: dict[str, Any] = {"requested": request.timestamp_ms, **_own_fields(request)}
        if response.source is not None:
            own |= {"epoch": response.source.epoch, "host": response.source.host}
        fields[_OWN] = own
    return compact_json(fields)


def _fields(
    request: PlacementRequest,
    kind: str,
    status: PlacementStatus,
    timestamp_ms: int,
    message: str | None = None,
) -> dict[str, Any]:
    """Return the fields in the order in which Java's HashMap of just these names is written."""
    fields: dict[str, Any] = {
        "processorId": request.processor_id,
        "deploymentId": request.deployment_id,
        "requestExpiry": request.expiry_ms,
        "subType": kind,
        "responseMessage": message,
        "uuid": request.uuid,
        "destinationHost": request.destination,
        "statusCode": status.value,
        "timestamp": timestamp_ms,
    }
    return {name: value for name, value in fields.items() if value is not None}


def decode_request(value: bytes) -> PlacementRequest:
    """Return the request that a record's value holds; WireError where it is not one."""
    body = _body(value, _REQUEST)
    return _request_of(body, required_field(body, "timestamp", int))


def decode_response(value: bytes) -> PlacementResponse:
    """Return the answer in a record's value, Samza's or ours; WireError where it is not one."""
    body = _body(value, _RESPONSE)
    said_ms = required_field(body, "timestamp", int)
    own = as_object(body.get(_OWN, {}), _OWN)
    epoch, host = optional_number(own, "epoch"), optional_field(own, "host", str)
    requested_ms = optional_field(own, "requested", int)
    try:
        status = PlacementStatus(required_field(body, "statusCode", str))
    except ValueError as error:
        raise WireError(f"field 'statusCode': {str(error)[:MAX_TEXT]}") from None
    return PlacementResponse(
        _request_of(body, said_ms if requested_ms is None else requested_ms),
        status,
        required_field(body, "responseMessage", str),
        said_ms,
        None if epoch is None else PlacementSource(epoch, None if host is None else Host(host)),
    )


def _body(value: bytes, kind: str) -> dict[str, Any]:
    body = parse_object(value, "a placement message")
    if body.get("subType") != kind:
        raise WireError(f"field 'subType' is not {kind!r}: {shown(body.get('subType'))}")
    return body


def _request_of(body: Mapping[str, Any], timestamp_ms: int) -> PlacementRequest:
    own = as_object(body.get(_OWN, {}), _OWN)
    return PlacementRequest(
        required_field(body, "uuid", str),
        required_field(body, "deploymentId", str),
        ProcessorId(required_field(body, "processorId", str)),
        required_field(body, "destinationHost", str),
        optional_field(body, "requestExpiry", int),
        timestamp_ms,
        optional_field(own, "warm", bool) or False,
        optional_field(own, "drain", bool) or False,
    )


class PlacementManager(RecordManager):
    """Placement requests and answers in a coordinator stream, as of its last catch-up.

    Of those that others wrote, whatever is damaged is left out; of a request, see there. What is
    read has no more of any field than an answer has room for.
    """

    def read_requests(self) -> tuple[tuple[PlacementRequest, str], ...]:
        """Return requests that wait to be read, and why each can only be refused, empty if fine.

        In the order of their timestamps. One that is damaged is all blank but for the uuid that
        its key has, so that it can be refused. Those that ``unanswerable`` has are left out.
        """
        found = []
        for uuid, value in self._values(_REQUEST):
            if len(uuid) > MAX_TEXT:
                continue
            try:
                request = decode_request(value)
                if request.uuid != uuid:
                    raise WireError(f"field 'uuid' is not its key's: {shown(request.uuid)}")
            except WireError as error:
                found.append((PlacementRequest(uuid, "", ProcessorId(""), "", None, 0), str(error)))
            else:
                found.append((request.in_brief(), request.fault))
        return tuple(sorted(found, key=lambda f: (f[0].timestamp_ms, f[0].uuid)))

    def unanswerable(self) -> tuple[str, ...]:
        """Return the uuids of requests whose keys are too long for an answer."""
        return tuple(uuid for uuid, _ in self._values(_REQUEST) if len(uuid) > MAX_TEXT)

    def read_responses(self) -> dict[str, PlacementResponse]:
        """Return {uuid: the last answer to that request}."""
        return {uuid: response for uuid, (response, _) in self._read_responses().items()}

    def unfinished(self) -> tuple[tuple[PlacementResponse, str], ...]:
        """Return answers that are not final; why each action can only be ended, or empty."""
        found = self._read_responses().values()
        return tuple(item for item in found if not item[0].status.is_final)

    def _read_responses(self) -> dict[str, tuple[PlacementResponse, str]]:
        found = {}
        for uuid, value in self._values(_RESPONSE):
            try:
                response = decode_response(value)
            except WireError:
                continue
            request = response.request
            if request.uuid == uuid and len(uuid) <= MAX_TEXT:
                found[uuid] = (replace(response, request=request.in_brief()), request.fault)
        return found

    def _values(self, kind: str) -> Iterator[tuple[str, bytes]]:
        for key, message in self._stream.latest(Namespace.PLACE_CONTAINER).items():
            uuid, _, suffix = key.rpartition(".")
            if suffix == kind and message.raw is not None:
                yield uuid, message.raw

    @staticmethod
    def request_message(request: PlacementRequest) -> CoordinatorStreamMessage:
        """Return the record of a request."""
        value = encode_request(request)
        return wire.of_namespace(Namespace.PLACE_CONTAINER, f"{request.uuid}.{_REQUEST}", value)

    @staticmethod
    def response_message(response: PlacementResponse) -> CoordinatorStreamMessage:
        """Return the record of an answer; it replaces the request's earlier answer."""
        key, value = f"{response.request.uuid}.{_RESPONSE}", encode_response(response)
        return wire.of_namespace(Namespace.PLACE_CONTAINER, key, value)

    @staticmethod
    def is_answer(message: CoordinatorStreamMessage) -> bool:
        """Return whether this is the record of an answer."""
        is_placement = message.type == Namespace.PLACE_CONTAINER
        return is_placement and not message.is_tombstone and message.key.endswith(_RESPONSE)

    @staticmethod
    def request_deleted(uuid: str) -> CoordinatorStreamMessage:
        """Return the tombstone of a request."""
        return wire.tombstone(Namespace.PLACE_CONTAINER, f"{uuid}.{_REQUEST}")

    @staticmethod
    def response_deleted(uuid: str) -> CoordinatorStreamMessage:
        """Return the tombstone of an answer."""
        return wire.tombstone(Namespace.PLACE_CONTAINER, f"{uuid}.{_RESPONSE}")
