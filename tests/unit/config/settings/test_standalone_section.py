"""What the configuration says of processors that users start, and of what ZooKeeper is shown."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.declarations.standalone_keys import LOCAL, YARN, ZOOKEEPER
from homeport.config.errors import ConfigError
from homeport.config.settings.standalone_section import (
    StandaloneConfig,
    check_mixed_roles,
    coordinator_of,
    location_id,
    refuse_standbys,
    require_coordinator,
    require_never_standalone,
)
from homeport.config.settings.zookeeper_access import (
    ZooKeeperAccess,
    ZooKeeperTls,
    secret_variables,
)

CONNECT = {"job.coordinator.zk.connect": "a:1,b:2/x"}
ZK_IN_JAVA = "org.apache.samza.zk.ZkJobCoordinatorFactory"
LOCAL_IN_JAVA = "org.apache.samza.standalone.PassthroughJobCoordinatorFactory"


def test_samzas_defaults_hold() -> None:
    """Times are Samza's; the root is the document's zkBaseRootPath."""
    assert StandaloneConfig.of(Config(CONNECT)) == StandaloneConfig(
        "a:1,b:2", "/x/homeport", 30_000, 60_000, 40_000, 20_000, 8080
    )


_SERVERS = "write host:port of each server, separated by commas"
_NO_PATH = "it must be a path in ZooKeeper, such as /homeport"
_NAMES = "write names, each behind a slash"
_HOST = "cluster-manager.jobcoordinator.url.host"
_COORDINATORS = f"yarn, zookeeper, local, {ZK_IN_JAVA}, {LOCAL_IN_JAVA}"


@pytest.mark.parametrize(
    ("key", "value", "rule", "remedy"),
    [
        (
            "job.coordinator.zk.connect",
            " ",
            "processors find each other by ZooKeeper",
            "write host:port of its servers, or run the job by homeport run-local",
        ),
        ("job.coordinator.zk.connect", "a:1,b:x", "'b:x' is not of the form host:port", _SERVERS),
        (
            "job.coordinator.zk.connect",
            "a:70000",
            "'a:70000' is not of the form host:port",
            _SERVERS,
        ),
        ("job.coordinator.zk.root", "jobs", _NO_PATH, _NAMES),
        ("job.coordinator.zk.root", "/jobs/", _NO_PATH, _NAMES),
        (
            "job.coordinator.zk.root",
            "/zookeeper/jobs",
            "that path is ZooKeeper's own",
            "write another one",
        ),
        (
            "job.coordinator.factory",
            "yarn",
            "homeport run-processor needs zookeeper",
            "start the job by run-job, or remove the key",
        ),
        (
            "cluster-manager.jobcoordinator.read.open",
            "false",
            "processors read what the others do, and share no token",
            f"remove the key, and let a firewall or {_HOST} say which programs reach their ports",
        ),
        (
            "job.coordinator.factory",
            "raft",
            f"it must be one of {_COORDINATORS}",
            "write zookeeper",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    key: str, value: str, rule: str, remedy: str
) -> None:
    """With key, value, rule and remedy."""
    with pytest.raises(ConfigError) as caught:
        StandaloneConfig.of(Config({**CONNECT, key: value}))
    given = f"= {value!r}" if value.strip() else "is missing"
    assert str(caught.value) == f"{key} {given}: {rule}; {remedy}"


@pytest.mark.parametrize("servers", ["a", "a,b:2", "[::1]:2181, 10.0.0.1:1", "a.b-c:65535"])
def test_servers_are_names_or_addresses_with_or_without_a_port(servers: str) -> None:
    """As ZooKeeper's clients take them."""
    made = StandaloneConfig.of(Config({"job.coordinator.zk.connect": servers}))
    assert (made.connect, made.root) == (servers, "/homeport")


def test_a_coordinator_has_a_short_name() -> None:
    """Also where Samza's class names it; None where the key is not set."""
    assert coordinator_of(Config({"job.coordinator.factory": ZK_IN_JAVA})) == ZOOKEEPER
    assert coordinator_of(Config({"job.coordinator.factory": "yarn"})) == YARN
    assert coordinator_of(Config()) is None


def test_each_command_takes_its_own_coordinator_and_none() -> None:
    """Samza's Java names mean what they mean there."""
    java = ((ZK_IN_JAVA, ZOOKEEPER), (LOCAL_IN_JAVA, LOCAL))
    for given, wanted in (*java, ("yarn", YARN), ("", YARN)):
        require_coordinator(Config({"job.coordinator.factory": given}), wanted)
    with pytest.raises(ConfigError, match="run-job needs yarn; start the job by homeport run-pro"):
        require_coordinator(Config({"job.coordinator.factory": ZK_IN_JAVA}), YARN)


def test_a_job_that_processors_ran_does_not_run_on_yarn() -> None:
    """Its generations are transactional ids that epochs would use again."""
    require_never_standalone(Config({}))
    require_never_standalone(Config({"job.coordinator.factory": "org.example.Other"}))
    with pytest.raises(ConfigError) as caught:
        require_never_standalone(Config({"job.coordinator.factory": "local"}))
    assert str(caught.value) == (
        "job.id = '1': homeport run-local has run the job of this name and id, without --trial, "
        "and could still write; give the job another job.id and its stores other changelogs, and "
        "try jobs by run-local --trial, which leaves them to run-job"
    )


def test_a_job_that_is_migrated_or_may_be_says_so() -> None:
    """The remedy is the command."""
    for recorded, line in {
        "zookeeper": "and could still write; run homeport migrate --to=yarn, or give the job anoth",
        "migrating-to-yarn": "is not finished; finish it by homeport migrate --to=yarn",
        "migrating-to-zookeeper": "is not finished; finish it by homeport migrate --to=zookeeper",
    }.items():
        with pytest.raises(ConfigError) as caught:
            require_never_standalone(Config({"job.coordinator.factory": recorded}))
        assert line in str(caught.value)


def test_a_location_is_the_host_a_text_or_a_variable() -> None:
    """A host has one spelling; what the user writes is left as it is."""
    assert location_id(Config({}), {}, " NM1 ") == "nm1"
    assert location_id(Config({"job.location-id": "Rack 1"}), {}, "h") == "Rack 1"
    named = Config({"job.location-id": "env:NODE"})
    assert location_id(named, {"NODE": " n1 "}, "h") == "n1"
    with pytest.raises(ConfigError) as caught:
        location_id(named, {"NODE": " "}, "h")
    assert str(caught.value) == (
        "job.location-id = 'env:NODE': the environment variable 'NODE' must say where this "
        "processor runs; set NODE, or write the location itself"
    )


def test_a_job_in_one_place_has_no_standbys() -> None:
    """``run-local`` has one location; ``run-processor`` takes the same job."""
    standby = Config({"job.hotstandby.enabled": "true"})
    line = (
        "job.hotstandby.enabled = 'true': homeport run-local runs the whole job in one place, "
        "where a standby has none; write false, or run the job by homeport run-processor"
    )
    with pytest.raises(ConfigError, match=f"^{line}$"):
        refuse_standbys(standby)
    refuse_standbys(Config({}))


def test_a_container_on_yarn_has_both_roles_only_with_standbys() -> None:
    """Standalone processors have both in any case."""
    mixed = Config({"job.container.mixed-roles": "true"})
    with pytest.raises(ConfigError) as refused:
        check_mixed_roles(mixed)
    assert str(refused.value) == (
        "job.container.mixed-roles = 'true': it puts standby tasks beside active ones, and the job "
        "has no standbys; set job.standbytasks.replication.factor=2, or remove the key"
    )
    check_mixed_roles(mixed.merged({"job.standbytasks.replication.factor": "2"}))
    check_mixed_roles(Config({"job.container.mixed-roles": "false"}))
    StandaloneConfig.of(Config({**CONNECT, "job.container.mixed-roles": "true"}))


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
def test_what_zookeeper_cannot_be_shown_is_refused_in_one_line(
    values: dict[str, str], rule: str, remedy: str
) -> None:
    """With key, value, rule and remedy; a password is not in it."""
    with pytest.raises(ConfigError) as caught:
        ZooKeeperAccess.of(_config(values))
    assert str(caught.value) == f"{PREFIX}.{rule}; {remedy}"
