"""What an operator asks of one container's place, and what the answer is.

PURE. Samza's ContainerPlacementMessage and its two kinds; how they lie in the coordinator stream
is in ``metadata.placement``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from homeport.config.config import LONG_MAX
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.json_values import shown

ANY_HOST = "ANY_HOST"
"""Destination: another host, whichever is best."""
LAST_SEEN = "LAST_SEEN"
"""Destination: the host where the container runs, or last ran; reserved there, then stopped."""
FORCE_RESTART_LAST_SEEN = "FORCE_RESTART_LAST_SEEN"
"""Destination: stopped at once; it comes back as after any stop, on its launcher."""
CANCEL = "CANCEL"
"""Destination: none; all commands for the container that have not ended end now."""


MAX_TEXT = 200
"""Characters of each text in a request that can be met; an answer echoes no more of any."""
MAX_EXPIRY_MS = 86_400_000
"""A day: a request that waits for longer keeps its host from everybody else."""


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
    """One request, by the ``uuid`` that its writer chose.

    ``deployment_id``: which run of the job it is meant for. ``destination``: a host's name or one
    of the four words above. ``expiry_ms``: how long a launcher may be waited for; None: as long as
    for any request. ``timestamp_ms``: ms since 1970, by which requests queue. ``is_warm``: the
    state is read at the destination before the container stops. ``is_drain``: the move holds only
    while the container is on a drained host. What a foreign tool wrote may be of any size: see
    ``fault``.
    """

    uuid: str
    deployment_id: str
    processor_id: ProcessorId
    destination: str
    expiry_ms: int | None
    timestamp_ms: int
    is_warm: bool = False
    is_drain: bool = False

    @property
    def fault(self) -> str:
        """Why it cannot be met, whatever the state of the job; empty where nothing is wrong."""
        texts = {
            "uuid": self.uuid,
            "deploymentId": self.deployment_id,
            "processorId": self.processor_id,
            "destinationHost": self.destination,
        }
        for name, text in texts.items():
            if len(text) > MAX_TEXT:
                return f"{name} has {len(text)} characters: at most {MAX_TEXT} are read"
        if self.expiry_ms is not None and not 0 < self.expiry_ms <= MAX_EXPIRY_MS:
            return f"the expiry must be from 1 to {MAX_EXPIRY_MS} ms: {shown(self.expiry_ms)}"
        if not 0 <= self.timestamp_ms <= LONG_MAX:
            return f"the timestamp must be from 0 to {LONG_MAX}: {shown(self.timestamp_ms)}"
        return ""

    def in_brief(self) -> PlacementRequest:
        """Return the same request with no more of each field than an answer to it has room for.

        A request without a fault is as it was.
        """
        expiry_ms = self.expiry_ms
        if expiry_ms is not None and not -LONG_MAX <= expiry_ms <= LONG_MAX:
            expiry_ms = None
        return replace(
            self,
            uuid=_in_brief(self.uuid),
            deployment_id=_in_brief(self.deployment_id),
            processor_id=ProcessorId(_in_brief(self.processor_id)),
            destination=_in_brief(self.destination),
            expiry_ms=expiry_ms,
            timestamp_ms=min(max(self.timestamp_ms, 0), LONG_MAX),
        )


def _in_brief(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


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
