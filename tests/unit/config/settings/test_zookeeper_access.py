"""What the configuration says of a job's user at ZooKeeper, its certificate and its ACL."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.zookeeper_access import (
    ZooKeeperAccess,
    ZooKeeperTls,
    secret_variables,
)

PREFIX = "job.coordinator.zk"
USER = {"auth.scheme": "DIGEST-MD5", "auth.username": "alice", "auth.password": "env:ZK"}
TLS = {"tls.enabled": "true", "tls.certificate.path": "c.pem", "tls.key.path": "k.pem"}


def config(values: dict[str, str]) -> Config:
    """The keys, with their common beginning."""
    return Config({f"{PREFIX}.{name}": text for name, text in values.items()})


def test_nothing_is_shown_where_nothing_is_said() -> None:
    """Everybody may change the nodes, as without these keys."""
    assert ZooKeeperAccess.of(Config({})) == ZooKeeperAccess()
    assert secret_variables(Config({})) == []


def test_a_client_with_a_user_or_a_certificate_owns_the_nodes() -> None:
    """Unless the configuration says otherwise."""
    assert ZooKeeperAccess.of(config(USER)) == ZooKeeperAccess(
        "DIGEST-MD5", "alice", "env:ZK", is_owned=True
    )
    tls = ZooKeeperTls("", "c.pem", "k.pem", "file:/p")
    more = {"tls.key.password": "file:/p"}
    assert ZooKeeperAccess.of(config(TLS | more)) == ZooKeeperAccess(is_owned=True, tls=tls)
    assert not ZooKeeperAccess.of(config(USER | {"acl": "open"})).is_owned
    assert not ZooKeeperAccess.of(config({"tls.enabled": "true", "tls.ca.path": "a"})).is_owned
    ticket = ZooKeeperAccess.of(config({"auth.scheme": "GSSAPI"}))
    assert (ticket.scheme, ticket.username, ticket.is_owned) == ("GSSAPI", "", True)


def test_the_variables_of_secrets_are_known() -> None:
    """So that no child inherits them."""
    given = USER | {"tls.key.password": "env:KEY"}
    assert secret_variables(config(given)) == ["ZK", "KEY"]
    assert secret_variables(config({"auth.password": "file:/p"})) == []


REFUSED = [
    (
        USER | {"auth.password": "hunter2"},
        (
            "auth.password = '********': it must say where the secret is: the "
            "configuration goes "
            "into the coordinator stream; write env:NAME of an environment "
            "variable, or file:PATH"
        ),
    ),
    (
        {"auth.scheme": "digest", "auth.username": "alice"},
        (
            "auth.password is missing: job.coordinator.zk.auth.scheme=digest needs "
            "it; set it, or "
            "remove job.coordinator.zk.auth.scheme=digest"
        ),
    ),
    (
        {"auth.username": "alice"},
        (
            "auth.username = 'alice': it has no effect without job.coordinator.zk.auth.scheme="
            "digest or DIGEST-MD5; set job.coordinator.zk.auth.scheme, or remove the key"
        ),
    ),
    (
        {"auth.scheme": "PLAIN"},
        (
            "auth.scheme = 'PLAIN': it must be digest or DIGEST-MD5 or GSSAPI; write digest or "
            "DIGEST-MD5 or GSSAPI"
        ),
    ),
    (
        {"acl": "creator"},
        (
            "acl = 'creator': the nodes belong to a user or a certificate, and the job shows "
            "none; set job.coordinator.zk.auth.scheme or "
            "job.coordinator.zk.tls.certificate.path, or write open"
        ),
    ),
    (
        {"tls.ca.path": "a"},
        (
            "tls.ca.path = 'a': it has no effect without "
            "job.coordinator.zk.tls.enabled=true; set "
            "job.coordinator.zk.tls.enabled, or remove the key"
        ),
    ),
    (
        {"tls.enabled": "true", "tls.certificate.path": "c"},
        (
            "tls.key.path is missing: job.coordinator.zk.tls.certificate.path "
            "needs it; set it, "
            "or remove job.coordinator.zk.tls.certificate.path"
        ),
    ),
]


@pytest.mark.parametrize(("values", "line"), REFUSED)
def test_what_cannot_be_is_refused_in_one_line(values: dict[str, str], line: str) -> None:
    """With key, value, rule and remedy; a password is not in it."""
    with pytest.raises(ConfigError) as caught:
        ZooKeeperAccess.of(config(values))
    assert str(caught.value) == f"{PREFIX}.{line}"
