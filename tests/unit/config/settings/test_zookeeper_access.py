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


def _config(values: dict[str, str]) -> Config:
    return Config({f"{PREFIX}.{name}": text for name, text in values.items()})


def test_nothing_is_shown_where_nothing_is_said() -> None:
    """Everybody may change the nodes, as without these keys."""
    assert ZooKeeperAccess.of(Config({})) == ZooKeeperAccess()
    assert secret_variables(Config({})) == []


def test_a_client_with_a_user_or_a_certificate_owns_the_nodes() -> None:
    """Unless the configuration says otherwise."""
    assert ZooKeeperAccess.of(_config(USER)) == ZooKeeperAccess(
        "DIGEST-MD5", "alice", "env:ZK", is_owned=True
    )
    tls = ZooKeeperTls("", "c.pem", "k.pem", "file:/p")
    more = {"tls.key.password": "file:/p"}
    assert ZooKeeperAccess.of(_config(TLS | more)) == ZooKeeperAccess(is_owned=True, tls=tls)
    assert not ZooKeeperAccess.of(_config(USER | {"acl": "open"})).is_owned
    assert not ZooKeeperAccess.of(_config({"tls.enabled": "true", "tls.ca.path": "a"})).is_owned
    ticket = ZooKeeperAccess.of(_config({"auth.scheme": "GSSAPI"}))
    assert (ticket.scheme, ticket.username, ticket.is_owned) == ("GSSAPI", "", True)


def test_the_variables_of_secrets_are_known() -> None:
    """So that no child inherits them."""
    given = USER | {"tls.key.password": "env:KEY"}
    assert secret_variables(_config(given)) == ["ZK", "KEY"]
    assert secret_variables(_config({"auth.password": "file:/p"})) == []


_IN_THE_STREAM = (
    "it must say where the secret is: the configuration goes into the coordinator stream"
)
CERTIFICATE, SCHEME = f"{PREFIX}.tls.certificate.path", f"{PREFIX}.auth.scheme"


@pytest.mark.parametrize(
    ("values", "rule", "remedy"),
    [
        (
            USER | {"auth.password": "hunter2"},
            f"auth.password = '********': {_IN_THE_STREAM}",
            "write env:NAME of an environment variable, or file:PATH",
        ),
        (
            {"auth.scheme": "digest", "auth.username": "alice"},
            f"auth.password is missing: {SCHEME}=digest needs it",
            f"set it, or remove {SCHEME}=digest",
        ),
        (
            {"auth.username": "alice"},
            f"auth.username = 'alice': it has no effect without {SCHEME}=digest or DIGEST-MD5",
            f"set {SCHEME}, or remove the key",
        ),
        (
            {"auth.scheme": "PLAIN"},
            "auth.scheme = 'PLAIN': it must be digest or DIGEST-MD5 or GSSAPI",
            "write digest or DIGEST-MD5 or GSSAPI",
        ),
        (
            {"acl": "creator"},
            "acl = 'creator': the nodes belong to a user or a certificate, and the job shows none",
            f"set {SCHEME} or {CERTIFICATE}, or write open",
        ),
        (
            {"tls.ca.path": "a"},
            f"tls.ca.path = 'a': it has no effect without {PREFIX}.tls.enabled=true",
            f"set {PREFIX}.tls.enabled, or remove the key",
        ),
        (
            {"tls.enabled": "true", "tls.certificate.path": "c"},
            f"tls.key.path is missing: {CERTIFICATE} needs it",
            f"set it, or remove {CERTIFICATE}",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    values: dict[str, str], rule: str, remedy: str
) -> None:
    """With key, value, rule and remedy; a password is not in it."""
    with pytest.raises(ConfigError) as caught:
        ZooKeeperAccess.of(_config(values))
    assert str(caught.value) == f"{PREFIX}.{rule}; {remedy}"
