"""Jobs whose coordinator stream and YARN are at hand, for tests of the tools that ask both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.yarn.resource_manager_rest import (
    APPLICATION_TAG,
    Application,
    ResourceManagerRest,
)
from homeport.appmaster.yarn.submission import application_name, job_tag
from homeport.cli.yarn.job import Job
from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE


class _Yarn(ResourceManagerRest):
    def __init__(self, known: tuple[Application, ...]) -> None:
        super().__init__((), "nowhere")
        self._known = known

    def applications(self, name: str) -> tuple[Application, ...]:
        return tuple(a for a in self._known if a.name == name)


@dataclass(frozen=True)
class JobAtHand(Job):
    """A job with this coordinator stream, or with none."""

    kept: InMemoryCoordinatorStream | None = None

    def has_stream(self) -> bool:
        """Return whether there is one."""
        return self.kept is not None

    @contextlib.contextmanager
    def stream(self) -> Iterator[InMemoryCoordinatorStream]:  # type: ignore[override]  # no Kafka
        """Open it, read to its head."""
        assert self.kept is not None
        self.kept.catch_up()
        yield self.kept


def job_at_hand(
    config: Config, stream: InMemoryCoordinatorStream | None = None, *known: Application
) -> JobAtHand:
    """Return the job of ``config`` on a YARN that knows these applications."""
    return JobAtHand(config, _Yarn(known), config, stream)


def application_of(config: Config, number: int = 1, state: str = "RUNNING") -> Application:
    """Return an application of that job."""
    tags = frozenset({APPLICATION_TAG, job_tag(config)})
    name = application_name(config)
    return Application(f"application_1_{number}", name, state, "", "", "", "", number, tags)


def written(**keys: str) -> InMemoryCoordinatorStream:
    """Return a stream into which the writer tool has written these; ``__`` stands for a dot."""
    stream = InMemoryCoordinatorStream(WRITER_SOURCE)
    stream.write([wire.set_config(key.replace("__", "."), value) for key, value in keys.items()])
    stream.catch_up()
    return stream
