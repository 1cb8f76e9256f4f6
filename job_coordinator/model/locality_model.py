"""LocalityModel: on which host each processor last started successfully, and its JSON form.

PURE. Kept apart from the JobModel on purpose: hosts change without any change of work
(HA-STANDALONE; design, section 5). An unknown host is None here; Samza's empty string exists only
in the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.job_coordinator.model.ids import Host, ProcessorId, host_of
from homeport.job_coordinator.model.json_values import (
    as_object,
    compact_json,
    parse_object,
    required_field,
)


@dataclass(frozen=True, slots=True)
class ProcessorLocality:
    """One processor and the host of its last successful start; None where none is known.

    ``processor_id`` is None in the answer to a question that names no processor.
    """

    processor_id: ProcessorId | None
    host: Host | None


@dataclass(frozen=True)
class LocalityModel:
    """All known localities, by processor id."""

    processor_localities: Mapping[ProcessorId, ProcessorLocality]

    @staticmethod
    def of(hosts: Mapping[ProcessorId, Host]) -> LocalityModel:
        """The model of these hosts. Shapes: ``hosts`` {processor_id: host}."""
        return LocalityModel({id_: ProcessorLocality(id_, hosts[id_]) for id_ in sorted(hosts)})


def encode_locality(model: LocalityModel) -> bytes:
    """``{"processor-localities":{"0":{"id":"0","host":"h1",...}}}``, sorted by processor id."""
    localities = model.processor_localities
    return compact_json(
        {"processor-localities": {id_: _locality(localities[id_]) for id_ in sorted(localities)}}
    )


def encode_processor_locality(locality: ProcessorLocality) -> bytes:
    """``{"id":"0","host":"h1","jmx-url":"","jmx-tunneling-url":""}``; no host: empty string."""
    return compact_json(_locality(locality))


def decode_locality(data: bytes) -> LocalityModel:
    """The localities that ``data`` holds; unknown fields are ignored.

    Raises:
        WireError: not JSON, or a field is missing or of the wrong type.
    """
    body = required_field(parse_object(data, "LocalityModel"), "processor-localities", dict)
    read = {
        ProcessorId(id_): _read_locality(as_object(locality, f"locality of {id_!r}"))
        for id_, locality in body.items()
    }
    return LocalityModel(dict(sorted(read.items())))


def _locality(locality: ProcessorLocality) -> dict[str, Any]:
    # The JMX addresses are Samza's; a Python process has none.
    return {
        "id": locality.processor_id,
        "host": locality.host or "",
        "jmx-url": "",
        "jmx-tunneling-url": "",
    }


def _read_locality(body: dict[str, Any]) -> ProcessorLocality:
    host = host_of(required_field(body, "host", str))
    return ProcessorLocality(ProcessorId(required_field(body, "id", str)), host or None)
