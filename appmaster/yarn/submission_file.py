"""The private file from ``run-job`` to the AM, localised into the AM's working directory.

It holds the keys that find the coordinator stream (where the AM reads the rest), the submission
number, and the whole configuration as it was submitted: keys that only a new submission changes are
in force as they are here, whatever the stream has. It is a file, because the configuration may hold
secrets, and YARN writes a container's environment into its logs.

Source: Samza 1.8, SAMZA_COORDINATOR_SYSTEM_CONFIG; safety A1 for the submission number.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import Struct

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.model.wire_form import decoded

SUBMISSION_FILE_NAME = "homeport-coordinator.json"


@dataclass(frozen=True)
class Submitted:
    """The configuration of a submission.

    ``config``: all of it, as ``run-job`` checked it. ``file``: without keys that the writer tool
    had set by then: its values are in force again where such a key's record is deleted.
    """

    config: Config
    file: Config


class _Body(Struct):
    submission: int
    config: dict[str, str]
    submitted: dict[str, str]
    file: dict[str, str | None]
    """What is different from ``submitted``; None: the key is not there."""
    services: dict[str, str] | None = None
    """Only of a version whose Skein bound a service to each host."""


@dataclass(frozen=True)
class SubmissionFile:
    """Content of the file."""

    config: Config
    number: int
    submitted: Submitted

    def to_bytes(self) -> bytes:
        """Return the file's bytes."""
        whole, file = self.submitted.config, self.submitted.file
        different = {k: file.get(k) for k in {*whole, *file} if whole.get(k) != file.get(k)}
        body = _Body(self.number, dict(self.config), dict(whole), different)
        return msgspec.json.format(msgspec.json.encode(body), indent=1)

    @staticmethod
    def from_bytes(data: bytes) -> SubmissionFile:
        """Return the content that ``data`` carries.

        ConfigError: an older version has submitted the job, whose Skein cannot name a host in a
        request. WireError: not such a file.
        """
        body = decoded(_Body, data, SUBMISSION_FILE_NAME)
        if body.services is not None:
            raise ConfigError(
                *(SUBMISSION_FILE_NAME, f"submission {body.submission}"),
                "an older version of homeport has submitted it",
                "end the job with that version, then submit it with this one",
            )
        file = {k: v for k, v in {**body.submitted, **body.file}.items() if v is not None}
        return SubmissionFile(
            Config(body.config), body.submission, Submitted(Config(body.submitted), Config(file))
        )


def coordinator_part(config: Config) -> Config:
    """Return only the keys that are needed to read the coordinator stream."""
    job = JobConfig.of(config)
    system = f"systems.{job.coordinator_system}."
    return Config(
        {
            "job.name": job.name,
            "job.id": job.id,
            "job.coordinator.system": job.coordinator_system,
            **{key: value for key, value in config.items() if key.startswith(system)},
        }
    )
