"""The inputs, systems and stores in force, where they are others than the submission's: a record.

It is written in the transaction of each JobModel. The next attempt goes on with them where the keys
in the coordinator stream make no JobModel (safety A7): a start without an input drops its
positions. A submission begins without the record, as its keys replace all others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import WireError
from homeport.config.secret_names import has_secret
from homeport.job_coordinator.config_change import INPUTS
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.model.wire_form import decoded

_KEY = keys.YARN_AM_INPUTS.name
log = logging.getLogger("driver")


def records(
    submitted: Config, config: Config, stream: CoordinatorStream
) -> Iterator[CoordinatorStreamMessage]:
    """Yield the record of ``config``, which is in force, where the stream has another.

    Secrets are left out: they have the stream's values.
    """
    wanted = {
        key: config.get(key)
        for key in sorted({*submitted, *config})
        if _is_of_inputs(key)
        and submitted.get(key) != config.get(key)
        and not has_secret(key, config.get(key) or "")
    }
    text = msgspec.json.encode(wanted).decode() if wanted else None
    if text != ConfigManager(stream).read().get(_KEY):
        yield (
            wire.tombstone(MessageType.SET_CONFIG, _KEY)
            if text is None
            else wire.set_config(_KEY, text)
        )


def in_force(submitted: Config, stream: CoordinatorStream) -> Config:
    """Return ``submitted`` with the inputs, systems and stores of the last JobModel."""
    found = ConfigManager(stream).read()
    known: dict[str, str | None] = dict(submitted)
    known |= {k: v for k, v in found.items() if _is_of_inputs(k) and has_secret(k, v)}
    try:
        recorded = decoded(dict[str, str | None], found.get(_KEY, "{}").encode(), _KEY)
    except WireError as error:
        log.error("the inputs of the submission are used: %s", error)  # noqa: TRY400 - the line is enough
        recorded = {}
    known |= {key: value for key, value in recorded.items() if _is_of_inputs(key)}
    return Config({key: value for key, value in known.items() if value is not None})


def _is_of_inputs(key: str) -> bool:
    return key in INPUTS or key.startswith(("stores.", "systems."))
