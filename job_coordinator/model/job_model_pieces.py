"""The JobModel's bytes in pieces: the whole and the part of one processor are put together of them.

PURE. A job's configuration can have megabytes and its tasks can be many. A server
for a thousand containers encodes each piece once. Joined, the pieces are what ``codec`` says of the
same model.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

from homeport.config.config import Config
from homeport.config.secret_names import shown_value
from homeport.job_coordinator.model.codec import encode_container_model
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel
from homeport.job_coordinator.model.json_values import compact_json

_BEGIN = b'{"config":'
_CONTAINERS = b',"containers":{'
_KEYS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class JobModelPieces:
    """What every form of one JobModel has: its configuration before the containers, and its end.

    ``config``: the JSON object of the configuration.
    """

    config: bytes
    end: bytes

    @classmethod
    def of(cls, model: JobModel, *, mask_secrets: bool) -> Self:
        """The pieces of ``model``; ``mask_secrets`` as in ``codec.encode_job_model``."""
        highest = b"%d" % model.max_change_log_stream_partitions
        return cls(
            _encoded_config(model.config, mask_secrets=mask_secrets),
            b'},"max-change-log-stream-partitions":' + highest + b"}",
        )

    @property
    def head(self) -> tuple[bytes, ...]:
        """All that comes before the first container."""
        return _BEGIN, self.config, _CONTAINERS


def encode_containers(model: JobModel) -> bytes:
    """All containers as they stand between the braces of the whole JobModel."""
    return b",".join(_member(id_, model.containers[id_]) for id_ in sorted(model.containers))


def encode_part(model: JobModel, processor_id: ProcessorId) -> bytes:
    """The container of one processor as it stands between the braces of its part of the JobModel.

    Before or after a standby stands its active one: by what both have in common a reader knows
    whose standby it is.
    """
    active = model.containers[processor_id].active_processor
    ids = {processor_id, processor_id if active is None else active}
    return b",".join(_member(id_, model.containers[id_]) for id_ in sorted(ids))


def _member(processor_id: ProcessorId, container: ContainerModel) -> bytes:
    return compact_json(processor_id) + b":" + encode_container_model(container)


def _encoded_config(config: Config, *, mask_secrets: bool) -> bytes:
    # Some keys at a time: a configuration of megabytes is never there as objects once more, and
    # other threads get their turn.
    items = iter(config.items())
    pieces = []
    while some := dict(itertools.islice(items, _KEYS_AT_ONCE)):
        if mask_secrets:
            some = {key: shown_value(key, value) for key, value in some.items()}
        pieces.append(compact_json(some)[1:-1])
    return b"{" + b",".join(pieces) + b"}"
