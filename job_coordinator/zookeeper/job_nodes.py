"""Makes the nodes of a job before its first processor registers; helps to change several at once.

A transaction of ZooKeeper is done whole or not at all; kazoo returns the reason for a refusal.
"""

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
from homeport.job_coordinator.standalone import nodes

_REFUSED = (NoNodeError, NodeExistsError, BadVersionError, RolledBackError, RuntimeInconsistency)
_FOLDERS = (nodes.PROCESSORS, nodes.BARRIERS, nodes.LOCALITY, nodes.FENCED)


def make_nodes(client: Any, root: str, *, is_owned: bool) -> None:  # noqa: ANN401 - of kazoo
    """Make the nodes of the job below ``root``, with the client's ACL.

    ``is_owned``: whether no other user may change the nodes.

    ConfigError: a node was made without an ACL, so that everybody may change it.
    """
    client.ensure_path(root)
    for name in ("", *_FOLDERS):
        path = f"{root}/{name}".rstrip("/")
        client.ensure_path(path)
        if is_owned:
            _require_owned(client, path)
    path = f"{root}/{nodes.JOB_MODELS}"
    with contextlib.suppress(NodeExistsError):
        client.create(path, nodes.encode_number(0))
    if is_owned:
        _require_owned(client, path)


def _require_owned(client: Any, path: str) -> None:  # noqa: ANN401 - of kazoo
    acls, _ = client.get_acls(path)
    if any(is_open(acl) for acl in acls):
        key = keys.JOB_COORDINATOR_ZK_ACL
        rule = f"everybody may change the node {path}, which was made without an ACL"
        remedy = f"set its ACL and that of all nodes below it (setAcl -R), or write {key.name}=open"
        raise key.error("creator", rule, remedy)


def is_open(acl: ACL) -> bool:
    """Return whether everybody may do more than read."""
    return acl.id.scheme == "world" and bool(acl.perms & ~Permissions.READ)


def put_value(client: Any, transaction: Any, path: str, value: bytes) -> None:  # noqa: ANN401 - of kazoo
    """Put the node's value by the transaction; create the node if it does not exist now."""
    if client.exists(path) is None:
        transaction.create(path, value)
    else:
        transaction.set_data(path, value)


def check_no_value(client: Any, transaction: Any, path: str, value: bytes) -> bool:  # noqa: ANN401 - of kazoo
    """Return whether the node has another value now, or does not exist.

    The transaction requires that the node has not changed, or still does not exist, by then.
    """
    try:
        found, stat = client.get(path)
    except NoNodeError:
        transaction.create(path, b"")  # refused if it exists; no one else sees this node
        transaction.delete(path)
        return True
    transaction.check(path, stat.version)
    return bool(found != value)


def is_done(transaction: Any) -> bool:  # noqa: ANN401 - of kazoo
    """Commit; return whether all of it was done. Else nothing was: a requirement did not hold."""
    results: Sequence[object] = transaction.commit()
    faults = [result for result in results if isinstance(result, KazooException)]
    others = [fault for fault in faults if not isinstance(fault, _REFUSED)]
    if others:
        raise others[0]
    return not faults


def is_there(answer: Any) -> bool:  # noqa: ANN401 - of kazoo
    """Return whether the requested node exists."""
    try:
        answer.get()
    except NoNodeError:
        return False
    return True


def answers_of(
    ask: Callable[[str], Any], path: str, names: Iterable[str]
) -> Iterator[tuple[str, Any]]:
    """Yield (name, answer) of each node that exists, by name; send all requests at once."""
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
