"""The configuration as the dashboard shows it: each key, and which program set it, where and when.

PURE. Secrets are masked, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.config.secret_names import shown_value
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)


def configuration(
    config: Mapping[str, str], written: Mapping[str, CoordinatorStreamMessage] | None
) -> dict[str, Any]:
    """The body of ``GET /ui/configuration``.

    Args:
        config: in force.
        written: {key: the newest record of it in the coordinator stream}; None: the job has none,
            as each processor reads its own file.

    Order: by key. ``source`` and what follows it are None where no record says it.
    """
    return {"in_stream": written is not None, "keys": list(_keys(config, written or {}))}


def _keys(
    config: Mapping[str, str], written: Mapping[str, CoordinatorStreamMessage]
) -> Iterable[dict[str, Any]]:
    for key, value in sorted(config.items()):
        record = written.get(key)
        yield {
            "key": key,
            "value": shown_value(key, value),
            "source": record and record.source,
            "user": record and record.username,
            "host": record and record.host,
            "at_ms": record and record.timestamp_ms,
        }
