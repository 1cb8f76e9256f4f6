"""Whose coordinator stream a topic is.

Samza writes ``_`` as ``-`` in the names of a job's own topics: jobs whose names differ in nothing
else have one coordinator stream and one checkpoint topic. The bytes of those names are Samza's and
stay. The configuration in the stream says which job it belongs to, and no other job uses it.

Source: COORD, "Coordinator Stream Naming".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage


class StreamOwner(NamedTuple):
    """The job that a coordinator stream belongs to: ``job.name`` and ``job.id``."""

    name: str
    id: str

    @staticmethod
    def of(job: JobConfig) -> StreamOwner:
        """Return the job that a configuration describes."""
        return StreamOwner(job.name, job.id)

    @staticmethod
    def recorded(configs: Mapping[str, CoordinatorStreamMessage]) -> StreamOwner | None:
        """Return the job that the stream's configuration names; None where it names none.

        ``configs``: {key: last set-config record}.
        """
        name, job_id = (
            message.value("value") if (message := configs.get(key.name)) else None
            for key in (keys.JOB_NAME, keys.JOB_ID)
        )
        return StreamOwner(name, job_id or str(keys.JOB_ID.default)) if name else None

    def require(self, configs: Mapping[str, CoordinatorStreamMessage], topic: str) -> None:
        """Require that the stream ``topic`` is this job's, or has no owner yet.

        ConfigError: it belongs to another job.
        """
        found = self.recorded(configs)
        if found is None or found == self:
            return
        is_name = found.name != self.name
        raise ConfigError(
            keys.JOB_NAME.name if is_name else keys.JOB_ID.name,
            self.name if is_name else self.id,
            f"the coordinator stream {topic!r} belongs to the job with {keys.JOB_NAME.name} = "
            f"{found.name!r} and {keys.JOB_ID.name} = {found.id!r}: in names of topics _ and - are "
            "the same",
            f"choose another {keys.JOB_NAME.name} or {keys.JOB_ID.name}",
        )
