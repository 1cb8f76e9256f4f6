"""What a client shows ZooKeeper, from where the keys say it is."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from kazoo.exceptions import AuthFailedError, ConnectionDropped, SessionClosedRequireSaslError
from kazoo.protocol.states import KeeperState
from zookeeper_security import make_pair

from homeport.config.errors import ConfigError
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.config.settings.zookeeper_access import ZooKeeperAccess, ZooKeeperTls
from homeport.job_coordinator.zookeeper.client import (
    Faults,
    credentials_of,
    new_client,
    no_right,
    refused_user,
    with_short_waits,
)

OPEN = ZooKeeperAccess()
"""Of a ZooKeeper that is shown nothing."""


def settings(connect: str = "a:1", access: ZooKeeperAccess = OPEN) -> StandaloneConfig:
    """Of a job below /homeport."""
    return StandaloneConfig(connect, "/homeport", 1000, 1000, 1000, 0, 8080, access=access)


@pytest.mark.parametrize(
    ("connect", "tried"),
    [
        ("z:1", "z:1,z:1,z:1"),
        ("z:1/root", "z:1,z:1,z:1/root"),
        ("a:1,b:2", "a:1,b:2,a:1,b:2"),
        ("a:1,b:2,c:3/x/y", "a:1,b:2,c:3/x/y"),
        ("a:1,b:2,c:3,d:4", "a:1,b:2,c:3,d:4"),
    ],
)
def test_no_server_is_waited_for_as_long_as_the_session(connect: str, tried: str) -> None:
    """Kazoo divides the time by the number of names: a third of it at most is for one of them."""
    assert with_short_waits(connect) == tried


def test_a_password_comes_from_a_variable_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the end of its line; a file is UTF-8, whatever the locale of the process is."""
    monkeypatch.setenv("ZK", "hunter2")
    assert credentials_of(ZooKeeperAccess("digest", "alice", "env:ZK")) == {
        "auth_data": [("digest", "alice:hunter2")]
    }
    monkeypatch.setattr("locale.getencoding", lambda: "latin-1")
    path = tmp_path / "secret"
    path.write_bytes("hünter\n".encode())
    assert credentials_of(ZooKeeperAccess("DIGEST-MD5", "alice", f"file:{path}")) == {
        "sasl_options": {"mechanism": "DIGEST-MD5", "username": "alice", "password": "hünter"}
    }


def test_the_nodes_belong_to_the_user_else_to_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many jobs of a host may have one certificate."""
    monkeypatch.setenv("ZK", "hunter2")
    certificate, key = map(str, make_pair("a").write(tmp_path, "a"))
    tls = ZooKeeperTls("", certificate, key)

    def owners(scheme: str) -> list[tuple[str, str]]:
        user, place = ("alice", "env:ZK") if scheme else ("", "")
        made = credentials_of(ZooKeeperAccess(scheme, user, place, is_owned=True, tls=tls))
        return [(acl.id.scheme, acl.id.id) for acl in made["default_acl"]]

    assert owners("DIGEST-MD5") == [("sasl", "alice")]
    assert owners("digest") == [("digest", "alice:aDXzchwuziNgjg8HfrldaeHjp5Y=")]
    assert owners("") == [("auth", "")]
    assert "default_acl" not in credentials_of(ZooKeeperAccess("digest", "alice", "env:ZK"))


def test_a_secret_that_is_not_there_is_named_by_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line; what the place is, and why it does not serve."""
    monkeypatch.delenv("ZK", raising=False)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").write_bytes(b"\n")
    for place, why in {
        "env:ZK": "the environment variable 'ZK' must hold the secret; write it there",
        f"file:{tmp_path}/none": "must hold the secret (No such file or directory); write it",
        f"file:{tmp_path}/binary": "must hold the secret (it is no text); write it",
        f"file:{tmp_path}/empty": "must hold the secret; write it there",
    }.items():
        with pytest.raises(ConfigError) as caught:
            credentials_of(ZooKeeperAccess("digest", "alice", place))
        assert str(caught.value).startswith("job.coordinator.zk.auth.password")
        assert why in str(caught.value)


def test_the_files_of_tls_are_looked_at_before_anything_begins(tmp_path: Path) -> None:
    """A certificate without its key, and a file that is none, are named."""
    one, other = make_pair("a").write(tmp_path, "a"), make_pair("b").write(tmp_path, "b")
    tls = ZooKeeperTls(str(one[0]), str(one[0]), str(one[1]))
    made = credentials_of(ZooKeeperAccess(tls=tls, is_owned=True))
    assert [made[name] for name in ("use_ssl", "verify_certs", "check_hostname")] == [True] * 3
    named = [made[name] for name in ("ca", "certfile", "keyfile")]
    assert named == [tls.ca, tls.certificate, tls.key]
    made = credentials_of(ZooKeeperAccess(tls=ZooKeeperTls(tls.ca)))
    assert (made["use_ssl"], made["certfile"]) == (True, ""), "a client may have none itself"
    with pytest.raises(ConfigError) as caught:
        credentials_of(ZooKeeperAccess(tls=ZooKeeperTls("", str(one[0]), str(other[1]))))
    assert str(caught.value) == (
        f"job.coordinator.zk.tls.certificate.path = '{one[0]}': it must be a PEM file with a "
        "certificate, and job.coordinator.zk.tls.key.path its key (KEY_VALUES_MISMATCH); correct "
        "the paths, or the files"
    )
    with pytest.raises(ConfigError, match=r"ca\.path = .*: it must be a PEM file with certificat"):
        credentials_of(ZooKeeperAccess(tls=ZooKeeperTls(f"{tmp_path}/none")))


@pytest.mark.parametrize(
    ("access", "line"),
    [
        (
            ZooKeeperAccess(),
            "ZooKeeper at a refuses clients that show no user: set job.coordinator.zk.auth.scheme",
        ),
        (
            ZooKeeperAccess("digest", "alice", "env:ZK"),
            (
                "ZooKeeper at a refuses the user job.coordinator.zk.auth.username = 'alice' "
                "(digest): correct it, or what job.coordinator.zk.auth.password names"
            ),
        ),
    ],
)
def test_a_refused_user_is_named(access: ZooKeeperAccess, line: str) -> None:
    """The line names the key that one without any is to set."""
    assert refused_user(settings("a", access)) == line


@pytest.mark.parametrize(
    ("access", "shown"),
    [
        (ZooKeeperAccess(), "a client that shows nothing"),
        (ZooKeeperAccess(tls=ZooKeeperTls("ca.pem")), "a client that shows nothing"),
        (
            ZooKeeperAccess(tls=ZooKeeperTls("ca.pem", "own.pem", "own.key")),
            "job.coordinator.zk.tls.certificate.path = 'own.pem'",
        ),
        (
            ZooKeeperAccess("digest", "alice", "env:ZK"),
            "job.coordinator.zk.auth.username = 'alice'",
        ),
    ],
)
def test_a_client_without_a_right_is_named(access: ZooKeeperAccess, shown: str) -> None:
    """The user, else the certificate, that the client shows."""
    start = f"ZooKeeper at a gives {shown} no right on /homeport/j, or on a node above it: "
    assert no_right(settings("a", access), "/homeport/j").startswith(start)


def test_a_ticket_needs_the_module_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no part of this project's environment."""
    monkeypatch.setattr("puresasl.mechanisms.have_kerberos", False)
    with pytest.raises(ConfigError, match="needs the Python module kerberos"):
        credentials_of(ZooKeeperAccess("GSSAPI"))
    monkeypatch.setattr("puresasl.mechanisms.have_kerberos", True)
    assert credentials_of(ZooKeeperAccess("GSSAPI", "me@A")) == {
        "sasl_options": {"mechanism": "GSSAPI", "service": "zookeeper", "principal": "me@A"}
    }


def test_a_break_during_sasl_refuses_no_user_that_was_taken_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kazoo says the same of both; the server's own reason is a refusal at any time."""
    ends: list[Exception | None] = []

    def connect(_self: object, *_arguments: object) -> tuple[int, int]:
        end = ends.pop(0)
        if end is not None:
            raise end
        return 1, 1

    monkeypatch.setattr("kazoo.protocol.connection.ConnectionHandler._connect", connect)
    broken = AuthFailedError("Connection dropped in SASL")
    broken.__cause__ = ConnectionDropped("gone")
    client = new_client(settings(), {}, Faults())
    refused = AuthFailedError("wrong password")
    ends += [broken, None, broken, SessionClosedRequireSaslError(), refused]
    with pytest.raises(AuthFailedError):
        client._connection._connect()
    assert client._connection._connect() == (1, 1)
    with pytest.raises(ConnectionDropped):
        client._connection._connect()
    for _ in range(2):
        with pytest.raises(AuthFailedError):
            client._connection._connect()


def test_a_refusal_of_the_user_is_noted() -> None:
    """A connection that is lost is none."""
    faults = Faults()
    client = new_client(settings(), {}, faults)
    client._session_callback(KeeperState.CONNECTED)
    client._session_callback(KeeperState.CONNECTING)
    assert not faults.is_refused
    client._session_callback(KeeperState.AUTH_FAILED)
    assert faults.is_refused


def test_the_last_fault_of_a_connection_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Lines that say nothing of a cause leave it as it is; TLS's name the keys."""
    faults = Faults(is_quiet=True)
    faults.warning("Connection dropped: %s", "socket connection error: refused")
    faults.warning("Transition to CONNECTING")
    assert (faults.last, caplog.records) == ("refused", [])
    faults.warning("Connection dropped: socket connection error: [SSL: X] y")
    assert faults.last == "TLS fails, correct the files of job.coordinator.zk.tls.*: [SSL: X] y"
    loud = Faults()
    with caplog.at_level(logging.WARNING, "kazoo"):
        try:
            raise KeyError("x")
        except KeyError:
            loud.exception("Unhandled exception in connection loop")
    assert loud.last == "KeyError('x')"
    assert [record.message for record in caplog.records] == [
        "Unhandled exception in connection loop"
    ]


def test_what_is_logged_is_what_the_program_logs(caplog: pytest.LogCaptureFixture) -> None:
    """A fault is kept although it is not logged; what is logged beside it is no fault."""
    faults = Faults()
    with caplog.at_level(logging.ERROR, "kazoo"):
        faults.warning("Connection dropped: %s", "refused")
    assert (faults.last, caplog.records) == ("refused", [])
    with caplog.at_level(logging.DEBUG, "kazoo"):
        faults.debug("Sending request: %s", "ping")
    assert [record.message for record in caplog.records] == ["Sending request: ping"]
    assert faults.last == "refused"
    assert not faults.isEnabledFor(logging.NOTSET + 1)


def test_the_last_faults_of_several_servers_have_one_of_each() -> None:
    """One server of three is read-only, and closes what comes; the two others refuse."""
    faults = Faults()
    new_client(settings("a:1,b:1,c:1"), {}, faults)
    closed = "a server closes the connection, as one without a quorum, or a read-only one, does"
    faults.warning("Connection dropped: socket connection broken")
    for _ in range(4):
        faults.warning("Connection dropped: socket connection error: refused")
    assert faults.last == f"{closed}; refused"
    faults.warning("Connection dropped: socket connection error: refused")
    assert faults.last == "refused"
