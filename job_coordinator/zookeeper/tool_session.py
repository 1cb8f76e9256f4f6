"""A session that a tool has with ZooKeeper, for one look at a job's nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from homeport.config.errors import HomeportError, UnavailableError
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.zookeeper.client import (
    REFUSALS,
    Faults,
    credentials_of,
    new_client,
    refused_user,
)


class RefusedError(HomeportError):
    """ZooKeeper refuses the user, or gives it no right."""


@contextlib.contextmanager
def tool_session(
    settings: StandaloneConfig,
    session_s: float,
    limit_s: float,
    *,
    read_only: bool = False,
    prepare: Callable[[KazooClient], None] = lambda _: None,
) -> Iterator[KazooClient]:
    """A client with a session for the block, which is closed after it.

    Args:
        settings: where ZooKeeper is, and what it is shown.
        session_s: the time-out that the session asks for.
        limit_s: how long it may take until there is one.
        read_only: whether a server without a quorum will do.
        prepare: called with the client before it begins.

    Raises:
        ConfigError: what is shown ZooKeeper is not where the configuration says.
        RefusedError: ZooKeeper refuses the user.
        UnavailableError: ZooKeeper does not answer; the line says why.
    """
    faults = Faults(is_quiet=True)
    credentials = credentials_of(settings.access)
    client = new_client(settings, credentials, faults, timeout=session_s, read_only=read_only)
    prepare(client)
    try:
        client.start(limit_s)
        yield client
    except (KazooException, KazooTimeoutError) as error:
        if faults.is_refused or isinstance(error, REFUSALS):
            raise RefusedError(refused_user(settings)) from None
        what = faults.last or str(error) or type(error).__name__
        raise UnavailableError(f"ZooKeeper at {settings.connect} does not answer: {what}") from None
    finally:
        client.stop()
        client.close()
