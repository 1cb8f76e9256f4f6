"""Makes the nodes of a job before its first processor registers; changes several at once.

A transaction of ZooKeeper is done whole or not at all; kazoo returns what it was refused for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import ACL, Permissions

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.job_coordinator.standalone import nodes

_REFUSED = (NoNodeError, NodeExistsError, BadVersionError, RolledBackError, RuntimeInconsistency)
_FOLDERS = (nodes.PROCESSORS, nodes.BARRIERS, nodes.LOCALITY, nodes.FENCED)


def make_nodes(client: Any, root: str, *, is_owned: bool) -> None:  # noqa: ANN401 - of kazoo
    """Make the nodes of the job below ``root``, as the client's ACL wants them.

    Args:
        client: of kazoo.
        root: of the job.
        is_owned: whether no other user may change them.

    Raises:
        ConfigError: others made them, so that everybody may change them.
    """
    client.ensure_path(root)
    for name in ("", *_FOLDERS):
        path = f"{root}/{name}".rstrip("/")
        client.ensure_path(path)
        if is_owned:
            _require_owned(client, path)
    path = f"{root}/{nodes.JOB_MODELS}"
    with contextlib.suppress(NodeExistsError):
        client.create(path, nodes.encode_version(0))
    if is_owned:
        _require_owned(client, path)


def _require_owned(client: Any, path: str) -> None:  # noqa: ANN401 - of kazoo
    acls, _ = client.get_acls(path)
    if any(is_open(acl) for acl in acls):
        key = keys.JOB_COORDINATOR_ZK_ACL
        raise ConfigError(
            key.name,
            "creator",
            f"everybody may change the node {path}, which was made without an ACL",
            f"set its ACL and that of all nodes below it (setAcl -R), or write {key.name}=open",
        )


def is_open(acl: ACL) -> bool:
    """Return whether everybody may do more than read."""
    return acl.id.scheme == "world" and bool(acl.perms & ~Permissions.READ)


def put_value(client: Any, transaction: Any, path: str, value: bytes) -> None:  # noqa: ANN401 - of kazoo
    """Put the node's value by the transaction; the node is made where it is not there now."""
    if client.exists(path) is None:
        transaction.create(path, value)
    else:
        transaction.set_data(path, value)


def check_no_value(client: Any, transaction: Any, path: str, value: bytes) -> bool:  # noqa: ANN401 - of kazoo
    """Return whether the node does not have the value now.

    The transaction is done only where the node is then as it is now, or is still not there.
    """
    try:
        found, stat = client.get(path)
    except NoNodeError:
        transaction.create(path, b"")  # refused where there is one; in no other eyes than its own
        transaction.delete(path)
        return True
    transaction.check(path, stat.version)
    return bool(found != value)


def is_done(transaction: Any) -> bool:  # noqa: ANN401 - of kazoo
    """Return whether all of it was done; else nothing was, as something was not as it must be."""
    results: Sequence[object] = transaction.commit()
    faults = [result for result in results if isinstance(result, KazooException)]
    others = [fault for fault in faults if not isinstance(fault, _REFUSED)]
    if others:
        raise others[0]
    return not faults


def is_there(answer: Any) -> bool:  # noqa: ANN401 - of kazoo
    """Return whether the node that was requested is there."""
    try:
        answer.get()
    except NoNodeError:
        return False
    return True


def answers_of(
    ask: Callable[[str], Any], path: str, names: Iterable[str]
) -> Iterator[tuple[str, Any]]:
    """Yield (name, answer) of each node that is there, by name; all requests go out at once."""
    asked = {name: ask(f"{path}/{name}") for name in sorted(names)}
    for name, answer in asked.items():
        with contextlib.suppress(NoNodeError):
            yield name, answer.get()


def values_of(client: Any, path: str, names: Iterable[str]) -> dict[str, bytes]:  # noqa: ANN401 - of kazoo
    """Return {name: value} of these nodes below ``path``, without those that are gone."""
    return {name: found[0] for name, found in answers_of(client.get_async, path, names)}


def values_below(client: Any, path: str) -> dict[str, bytes]:  # noqa: ANN401 - of kazoo
    """Return {text: value} of all nodes below ``path``, each of which is named by a text."""
    found = values_of(client, path, client.get_children(path))
    return {nodes.unescaped(name): value for name, value in found.items()}
