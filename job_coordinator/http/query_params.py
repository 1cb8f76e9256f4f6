"""The query parameters of the routes about decisions.

PURE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from homeport.config.errors import WireError
from homeport.job_coordinator.model.ids import Host, ProcessorId, host_of
from homeport.job_coordinator.model.json_values import shown

MAX_EVENTS_SENT: Final = 1_000
"""Most events of one answer."""

_EVENTS_SENT: Final = 100
_NUMBER: Final = re.compile(r"\d{1,18}", re.ASCII)


def version_asked(query: Mapping[str, str]) -> int | None:
    """Return ``?version=``; None where it is left out; WireError where it is no version."""
    text = query.get("version")
    return None if text is None else _number("version", text)


@dataclass(frozen=True, slots=True)
class EventsAsked:
    """Events numbered above ``since`` (None: the newest) that are about one processor, or any."""

    processor_id: ProcessorId | None = None
    since: int | None = None
    limit: int = _EVENTS_SENT

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> EventsAsked:
        """Return ``?processor=&since=&limit=``, each optional; WireError for other values."""
        processor, since, limit = map(query.get, ("processor", "since", "limit"))
        number = _EVENTS_SENT if limit is None else _number("limit", limit)
        if not 1 <= number <= MAX_EVENTS_SENT:
            raise WireError(f"limit is {number}: it must be from 1 to {MAX_EVENTS_SENT}")
        return cls(
            None if processor is None else ProcessorId(processor),
            None if since is None else _number("since", since),
            number,
        )


def hosts_asked(values: Sequence[str]) -> tuple[Host, ...]:
    """Return the hosts of ``?host=A&host=B``, sorted; WireError where there is none."""
    hosts = sorted({host_of(value) for value in values})
    if not hosts:
        raise WireError("no host is given: ask ?host=NAME, once for each host")
    return tuple(hosts)


def _number(name: str, text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise WireError(f"{name} is not a number: {shown(text)}")
    return int(text)
