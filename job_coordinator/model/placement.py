"""What an operator asks of one container's place, and what the answer is.

PURE. Samza's ContainerPlacementMessage and its two kinds; how they lie in the coordinator stream
is in ``metadata.placement``.

Source: samza-behaviours 4.9.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from homeport.job_coordinator.model.ids import Host, ProcessorId

ANY_HOST = "ANY_HOST"
"""Destination: another host, whichever is best."""
LAST_SEEN = "LAST_SEEN"
"""Destination: the host where the container runs, or last ran; reserved there, then stopped."""
FORCE_RESTART_LAST_SEEN = "FORCE_RESTART_LAST_SEEN"
"""Destination: stopped at once; it comes back as after any stop, on its launcher."""


class PlacementStatus(StrEnum):
    """How far a request has come; the names are Samza's status codes."""

    CREATED = "CREATED"
    """Written, not read yet."""
    BAD_REQUEST = "BAD_REQUEST"
    """Refused; nothing was done."""
    ACCEPTED = "ACCEPTED"
    """It waits for its turn."""
    IN_PROGRESS = "IN_PROGRESS"
    """A launcher is being reserved, or the container is on its way."""
    SUCCEEDED = "SUCCEEDED"
    """The container runs where it was wanted."""
    FAILED = "FAILED"
    """It does not, and goes on as it was, or where it was."""

    @property
    def is_final(self) -> bool:
        """Whether no other answer follows."""
        return self not in {self.CREATED, self.ACCEPTED, self.IN_PROGRESS}


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """One request, by the ``uuid`` that whoever wrote it chose.

    ``deployment_id``: which run of the job it is meant for. ``destination``: a host's name or one
    of the three words above. ``expiry_ms``: how long a launcher may be waited for; None: as long as
    for any request. ``timestamp_ms``: ms since 1970, by which requests queue.
    """

    uuid: str
    deployment_id: str
    processor_id: ProcessorId
    destination: str
    expiry_ms: int | None
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PlacementSource:
    """Where a container was when its action began: the incarnation ``epoch`` on ``host``."""

    epoch: int
    host: Host | None


@dataclass(frozen=True, slots=True)
class PlacementResponse:
    """What became of a request so far, said at ``timestamp_ms``, in ms since 1970.

    ``source`` is known of an action that is in progress.
    """

    request: PlacementRequest
    status: PlacementStatus
    message: str
    timestamp_ms: int
    source: PlacementSource | None = None
