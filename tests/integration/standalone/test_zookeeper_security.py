"""A ZooKeeper with TLS, certificates of clients, SASL and ACLs; each refusal is one line."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from processors_in_memory import Processor, settings, shared, story
from standalone_jobs import StandaloneJob, standalone_job
from topic_records import committed
from waiting import until
from zookeeper_security import Secured, secured_zookeeper, user

from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.config.settings.zookeeper_access import ZooKeeperAccess
from homeport.job_coordinator.standalone.protocol import EndCause
from homeport.job_coordinator.zookeeper.client import Faults, credentials_of, new_client
from homeport.job_coordinator.zookeeper.job_nodes import is_open
from homeport.job_coordinator.zookeeper.tool_session import registered_processors

MARK = f"pLaNtEd{uuid.uuid4().hex[:8]}"
"""In every password; no escaping changes it."""
ALICE, BOB, WRONG = "ZK_ALICE", "ZK_BOB", "ZK_WRONG"
PASSWORDS = {ALICE: f"{MARK}a", BOB: f"{MARK}b", WRONG: f"{MARK}w"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A server of this module's tests, which knows alice and bob."""
    users = {"alice": PASSWORDS[ALICE], "bob": PASSWORDS[BOB]}
    with secured_zookeeper(tmp_path_factory.mktemp("secured"), users) as made:
        yield made


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in variables of this process."""
    for variable, password in PASSWORDS.items():
        monkeypatch.setenv(variable, password)


def as_user(
    secured: Secured, keys: dict[str, str], connection_ms: int = 20_000
) -> StandaloneConfig:
    """Short times, and what the keys say of access."""
    made = settings(secured.server.connect, connection_ms=connection_ms)
    return replace(made, access=ZooKeeperAccess.of(Config(keys)))


def nodes_below(client: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - of kazoo
    """The path, and all below it."""
    yield path
    for name in client.get_children(path):
        yield from nodes_below(client, f"{path}/{name}")


def test_processors_share_the_tasks_and_every_node_is_theirs_alone(secured: Secured) -> None:
    """Another user with a good certificate and password has no right, and hears so."""
    keys = secured.tls() | user("alice", ALICE)
    own, root = as_user(secured, keys), f"/homeport/{uuid.uuid4().hex}"
    one, two = Processor("one", own, root), Processor("two", own, root)
    try:
        until(lambda: shared([one, two]), lambda: story([one, two]))
        client = new_client(own, credentials_of(own.access), Faults())
        client.start()
        try:
            paths = list(nodes_below(client, root))
            owners = [client.get_acls(path)[0] for path in paths]
        finally:
            client.stop()
            client.close()
        bob = Processor("bob", as_user(secured, secured.tls() | user("bob", BOB)), root)
        try:
            end = bob.join()
        finally:
            bob.close()
    finally:
        for processor in (one, two):
            processor.close()
    assert any("/processors/processor." in path for path in paths)
    assert any("/barriers/1/" in path for path in paths)
    assert any("/localityData/" in path for path in paths)
    assert {(acl.id.scheme, acl.id.id) for acls in owners for acl in acls} == {("sasl", "alice")}
    assert not any(is_open(acl) for acls in owners for acl in acls)
    assert end.cause is EndCause.FAILED
    assert "= 'bob' no right on" in end.text
    assert root in end.text


REFUSED = {
    "a wrong password": ("client", user("alice", WRONG), "refuses the user job.coordinator.zk"),
    "no user": ("client", {}, "refuses clients that show no user: set job.coord"),
    "a user that it does not ask for": ("client", user("alice", ALICE, "digest"), "refuses the us"),
    "a foreign certificate": ("stranger", user("alice", ALICE), "tls.*: [SSL"),
    "no certificate": ("", user("alice", ALICE), "tls.*: [SSL"),
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.replace(" ", "-"))
def test_a_refused_client_gets_the_reason_in_one_line(secured: Secured, case: str) -> None:
    """The processor at its start, and a tool; neither line has a password."""
    certificate, shown, why = REFUSED[case]
    keys = secured.tls(certificate) | shown
    end = Processor("one", as_user(secured, keys, 1500), "/homeport/x").join()
    named = {
        "job.name": "x",
        "job.default.system": "kafka",
        "job.coordinator.zk.connect": secured.server.connect,
        **keys,
    }
    with pytest.raises(HomeportError) as caught:
        registered_processors(Config(named), 2)
    for line in (end.text, str(caught.value)):
        assert why in line
        assert "\n" not in line
        assert MARK not in line
    assert end.cause is EndCause.FAILED


def test_a_server_that_another_authority_has_signed_is_not_trusted(secured: Secured) -> None:
    """Nothing is sent to it."""
    keys = secured.tls() | user("alice", ALICE)
    keys["job.coordinator.zk.tls.ca.path"] = str(secured.files["stranger"][0])
    end = Processor("one", as_user(secured, keys, 1500), "/homeport/x").join()
    assert "tls.*: [SSL: CERTIFICATE_VERIFY_FAILED]" in end.text


def test_nodes_that_everybody_may_change_are_not_used_as_ones_own(secured: Secured) -> None:
    """A job that asks for an ACL does not run on nodes which were made without one."""
    keys, root = secured.tls() | user("alice", ALICE), f"/homeport-{uuid.uuid4().hex}"
    one = Processor("one", as_user(secured, keys | {"job.coordinator.zk.acl": "open"}), root)
    try:
        until(lambda: shared([one]), lambda: story([one]))
    finally:
        one.close()
    end = Processor("two", as_user(secured, keys), root).join()
    assert end.text == (
        f"job.coordinator.zk.acl = 'creator': everybody may change the node {root}, which was made "
        "without an ACL; set its ACL and that of all nodes below it (setAcl -R), or write "
        "job.coordinator.zk.acl=open"
    )


@pytest.fixture
def job(kafka: str, tmp_path: Path, secured: Secured) -> Iterator[StandaloneJob]:
    """A job of alice's."""
    more = {
        "job.coordinator.zk.connect": secured.server.connect,
        "job.coordinator.zk.session.timeout.ms": "3000",
        "job.coordinator.zk.root": f"/of-{uuid.uuid4().hex}",
        "job.debounce.time.ms": "300",
        "cluster-manager.jobcoordinator.url.host": "127.0.0.1",
        **secured.tls(),
        **user("alice", ALICE),
    }
    with standalone_job(kafka, tmp_path, more) as made:
        yield made


def page(url: str) -> bytes:
    """What is served there, an error's page too."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - ours
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        return error.read()


def test_a_job_runs_so_and_its_password_is_seen_nowhere(job: StandaloneJob) -> None:
    """Topics, nodes, pages, files, command lines, tools, and the environment of its work."""
    seen: dict[str, bytes] = {}
    job.produce(20)
    process = job.processor("one")
    job.until(lambda: job.started_by("one") > 0)
    job.until_counted()
    for command in (("status",), ("explain", "one"), ("config", "get"), ("job-model", "--json")):
        done = job.tool(*command)
        assert done.returncode == 0, done.stderr
        seen[f"homeport {command}"] = (done.stdout + done.stderr).encode()
    assert b"The only container is where it should be" in seen["homeport ('status',)"]
    topic = f"__samza_coordinator_{job.name}_1"
    records = [(r.key() or b"") + (r.value() or b"") for r in committed(job.servers, topic, 1)]
    seen[topic] = b"\n".join(records)
    assert ALICE.encode() in seen[topic]
    named = Config(dict(line.split("=", 1) for line in job.config.read_text().splitlines()))
    (found,) = registered_processors(named, 20)
    for path in ("", "config", "locality", "metrics", "health", "v1/status", "v1/events"):
        seen[f"page /{path}"] = page(found.url + path)
    own = StandaloneConfig.of(named)
    client: KazooClient = new_client(own, credentials_of(own.access), Faults())
    client.start()
    try:
        for path in nodes_below(client, own.root):
            seen[f"node {path}"] = client.get(path)[0]
    finally:
        client.stop()
        client.close()
    children = children_of(process.pid)
    assert children
    for pid in (process.pid, *children):
        seen[f"command line of {pid}"] = Path(f"/proc/{pid}/cmdline").read_bytes()
    for pid in children:
        seen[f"environment of {pid}"] = Path(f"/proc/{pid}/environ").read_bytes()
    job.stop(process)
    for file in (path for path in job.folder.rglob("*") if path.is_file()):
        seen[str(file)] = file.read_bytes()
    own_password = os.environ[ALICE].encode()
    assert len(seen) > 30
    assert [where for where, data in seen.items() if own_password in data] == []
    refused = job.tool("explain", "one", environment={ALICE: PASSWORDS[WRONG]})
    assert refused.returncode == 1
    assert "refuses the user job.coordinator.zk.auth.username = 'alice'" in refused.stderr
    assert refused.stderr.count("\n") == 1


def children_of(pid: int) -> list[int]:
    """All processes below it."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            found += [child, *children_of(child)]
    return found
