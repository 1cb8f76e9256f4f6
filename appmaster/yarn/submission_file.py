"""What ``run-job`` hands to the AM: a private file localised into the AM's working directory.

It holds the part of the configuration that finds the coordinator stream (where the AM reads the
rest), the submission number, the services by host, and the whole configuration as it was submitted:
what needs a new submission to change is in force as it says, whatever the stream says since. It is
a file, not environment, because the configuration may hold secrets and YARN writes a container's
environment into its logs.
Source: Samza 1.8, SAMZA_COORDINATOR_SYSTEM_CONFIG; safety A1 for the submission number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.model.ids import Host, host_of

SUBMISSION_FILE_NAME = "homeport-coordinator.json"


@dataclass(frozen=True)
class Submitted:
    """The configuration that a submission began with.

    ``config``: all of it, as ``run-job`` checked it. ``file``: without what the writer tool had set
    until then, and so what is in force again of a key whose record is deleted.
    """

    config: Config
    file: Config


@dataclass(frozen=True)
class SubmissionFile:
    """Content of the file.

    Shapes: ``services`` {host: name of the Skein service whose containers run there and nowhere
    else}.
    """

    config: Config
    number: int
    services: Mapping[Host, str]
    submitted: Submitted

    def to_bytes(self) -> bytes:
        """Return the file's bytes."""
        body = {
            "submission": self.number,
            "config": dict(self.config),
            "services": dict(sorted(self.services.items())),
            "submitted": dict(self.submitted.config),
            "file": _difference(self.submitted.config, self.submitted.file),
        }
        return json.dumps(body, indent=1).encode()

    @staticmethod
    def from_bytes(data: bytes) -> SubmissionFile:
        """Return the content that ``data`` carries; WireError where it is not such a file."""
        try:
            body = json.loads(data)
            whole = dict(body["submitted"])
            file = {k: v for k, v in {**whole, **body["file"]}.items() if v is not None}
            return SubmissionFile(
                Config(body["config"]),
                int(body["submission"]),
                {host_of(h): str(s) for h, s in body["services"].items()},
                Submitted(Config(whole), Config(file)),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise WireError(f"{SUBMISSION_FILE_NAME} is not a submission file: {e!r}") from None


def coordinator_part(config: Config) -> Config:
    """Return the keys that are needed to read the coordinator stream, and no others."""
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


def _difference(config: Config, other: Config) -> dict[str, str | None]:
    """Return {key: value in ``other``, None where it has none} of the keys whose values differ."""
    return {k: other.get(k) for k in {*config, *other} if config.get(k) != other.get(k)}
