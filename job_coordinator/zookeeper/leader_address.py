"""Where the processors of a standalone job answer, as tools find it: by the job's configuration."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Registration
from homeport.job_coordinator.zookeeper.client import no_right
from homeport.job_coordinator.zookeeper.tool_session import RefusedError, tool_session

STAGE = "1"
"""The last part of a tree's name: a job has one stage."""


@dataclass(frozen=True, slots=True)
class RegisteredProcessor:
    """One that is registered now; ``url``: where it answers, empty where it does not say."""

    registration: Registration
    url: str


def job_root(config: Config, settings: StandaloneConfig) -> str:
    """The node of the job's tree."""
    job = JobConfig.of(config)
    names = job.name, job.id
    return nodes.root_of(settings.root, app=names, job=names, stage=STAGE)


@contextlib.contextmanager
def connected(
    settings: StandaloneConfig, root: str, timeout_s: float, *, read_only: bool = False
) -> Iterator[KazooClient]:
    """A client of a tool, with a session of its own, for a block about the nodes below ``root``.

    Raises:
        RefusedError: ZooKeeper refuses the user, or gives it no right.
        UnavailableError: ZooKeeper does not answer.
    """
    with tool_session(settings, timeout_s, timeout_s, read_only=read_only) as client:
        try:
            yield client
        except NoAuthError:
            raise RefusedError(no_right(settings, root)) from None


def registered_processors(config: Config, timeout_s: float) -> list[RegisteredProcessor]:
    """Return the processors of the job for people, the leader first.

    A server that is read-only, or behind the others, may not know of one. What is done where there
    is none goes by ``HandoverNodes``.

    Raises:
        ConfigError: the configuration does not say where ZooKeeper is, or what to show it.
        RefusedError: ZooKeeper refuses the user, or gives it no right.
        UnavailableError: ZooKeeper does not answer.
        WireError: a node holds what Homeport does not write.
    """
    settings = StandaloneConfig.of(config)
    root = job_root(config, settings)
    with connected(settings, root, timeout_s, read_only=True) as client:
        return registrations(client, root)


def registrations(client: KazooClient, root: str) -> list[RegisteredProcessor]:
    """Return the processors that are registered below ``root``, the leader first."""
    path, found = f"{root}/{nodes.PROCESSORS}", []
    with contextlib.suppress(NoNodeError):
        for name in client.get_children(path):
            with contextlib.suppress(NoNodeError):  # it has left
                data, _ = client.get(f"{path}/{name}")
                url = nodes.decode_url(name, data)
                found.append(RegisteredProcessor(nodes.decode_registration(name, data), url))
    return sorted(found, key=lambda processor: processor.registration.sequence)
