"""The JobModel's bytes in pieces: the whole and the part of one processor are put together of them.

PURE. A job's configuration can have megabytes and its tasks can be many; who serves them to a
thousand containers encodes each piece once. Joined, the pieces are what ``codec`` says of the same
model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from homeport.config.secrets import masked
from homeport.job_coordinator.model.codec import encode_container_model
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel
from homeport.job_coordinator.model.json_values import compact_json

_BEGIN = b'{"config":'
_CONTAINERS = b',"containers":{'


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
        config = masked(model.config) if mask_secrets else model.config
        highest = b"%d" % model.max_change_log_stream_partitions
        return cls(
            compact_json(dict(config)), b'},"max-change-log-stream-partitions":' + highest + b"}"
        )

    @property
    def head(self) -> tuple[bytes, ...]:
        """All that comes before the first container."""
        return _BEGIN, self.config, _CONTAINERS


def encode_containers(model: JobModel) -> bytes:
    """All containers as they stand between the braces of the whole JobModel."""
    return b",".join(encode_member(id_, model.containers[id_]) for id_ in sorted(model.containers))


def encode_member(processor_id: ProcessorId, container: ContainerModel) -> bytes:
    """One container after its name, as it stands between the braces."""
    return compact_json(processor_id) + b":" + encode_container_model(container)
