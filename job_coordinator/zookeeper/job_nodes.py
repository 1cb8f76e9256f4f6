"""The nodes of a job that are there before its first processor registers."""

from __future__ import annotations

import contextlib
from typing import Any

from kazoo.exceptions import NodeExistsError
from kazoo.security import ACL, Permissions

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.job_coordinator.standalone import nodes

_FOLDERS = (nodes.PROCESSORS, nodes.BARRIERS, nodes.LOCALITY, nodes.FENCED)


def make_nodes(client: Any, root: str, *, is_owned: bool) -> None:  # noqa: ANN401 - of kazoo
    """They are there, as the client's ACL wants them.

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
    """Whether everybody may do more than read."""
    return acl.id.scheme == "world" and bool(acl.perms & ~Permissions.READ)
