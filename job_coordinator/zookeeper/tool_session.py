"""Sessions of tools with ZooKeeper, and the processors that a standalone job has registered."""

import contextlib
from collections.abc import Callable, Iterator

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from homeport.config.config import Config
from homeport.config.errors import HomeportError, UnavailableError
from homeport.config.settings.sections import JobConfig
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Registration
from homeport.job_coordinator.zookeeper.client import (
    REFUSALS,
    Faults,
    credentials_of,
    new_client,
    no_right,
    refused_user,
)

STAGE = "1"
"""The last part of a tree's name: a job has one stage."""


class RefusedError(HomeportError):
    """ZooKeeper refuses the user, or gives it no right."""


@contextlib.contextmanager
def tool_session(
    settings: StandaloneConfig,
    root: str,
    limit_s: float,
    *,
    session_s: float | None = None,
    read_only: bool = False,
    on_connection: Callable[[int, int], None] = lambda *_: None,
) -> Iterator[KazooClient]:
    """Yield a client with a session for the block; close the session after it.

    ``root``: the node whose tree the block uses. ``limit_s``: the longest wait for the session.
    ``session_s``: its requested time-out; None: ``limit_s``. ``read_only``: whether a server
    without a quorum will do. ``on_connection``: as in ``new_client``.

    ConfigError: a secret or a file is not where its key names it.
    RefusedError: ZooKeeper refuses the user, or gives it no right.
    UnavailableError: ZooKeeper does not answer; the line has the cause.
    """
    faults = Faults(is_quiet=True)
    credentials = credentials_of(settings.access)
    client = new_client(
        settings,
        credentials,
        faults,
        on_connection,
        timeout=limit_s if session_s is None else session_s,
        read_only=read_only,
    )
    try:
        client.start(limit_s)
        yield client
    except NoAuthError:
        raise RefusedError(no_right(settings, root)) from None
    except (KazooException, KazooTimeoutError) as error:
        if faults.is_refused or isinstance(error, REFUSALS):
            raise RefusedError(refused_user(settings)) from None
        what = faults.last or str(error) or type(error).__name__
        raise UnavailableError(f"ZooKeeper at {settings.connect} does not answer: {what}") from None
    finally:
        client.stop()
        client.close()


def job_root(config: Config, settings: StandaloneConfig) -> str:
    """Return the node of the job's tree."""
    job = JobConfig.of(config)
    names = job.name, job.id
    return nodes.root_of(settings.root, app=names, job=names, stage=STAGE)


def registered_processors(config: Config, timeout_s: float) -> list[Registration]:
    """Return the registrations of the job's processors for people, the leader's first.

    A server that is read-only, or behind the others, may not know all processors. Read
    ``HandoverNodes`` before an action that requires that no processor is registered.

    ConfigError: the configuration does not name ZooKeeper, or its credentials.
    RefusedError: ZooKeeper refuses the user, or gives it no right.
    UnavailableError: ZooKeeper does not answer.
    WireError: a node has a value that Homeport does not write.
    """
    settings = StandaloneConfig.of(config)
    root = job_root(config, settings)
    with tool_session(settings, root, timeout_s, read_only=True) as client:
        return registrations(client, root)


def registrations(client: KazooClient, root: str) -> list[Registration]:
    """Return the registrations below ``root``, the leader's first."""
    path, found = f"{root}/{nodes.PROCESSORS}", []
    with contextlib.suppress(NoNodeError):
        for name in client.get_children(path):
            with contextlib.suppress(NoNodeError):  # it has left
                data, _ = client.get(f"{path}/{name}")
                found.append(nodes.decode_registration(name, data))
    return sorted(found)
