"""StandaloneConfig: how the processors of a job that users start find each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import values_of
from homeport.config.declarations.standalone_keys import (
    LOCAL,
    TO_YARN,
    TO_ZOOKEEPER,
    YARN,
    ZOOKEEPER,
)
from homeport.config.settings.sections import StandbyConfig
from homeport.config.settings.zookeeper_access import NO_ACCESS, ZooKeeperAccess

_JAVA = {
    "org.apache.samza.zk.ZkJobCoordinatorFactory": ZOOKEEPER,
    "org.apache.samza.standalone.PassthroughJobCoordinatorFactory": LOCAL,
}
_COMMANDS = {YARN: "run-job", ZOOKEEPER: "homeport run-processor", LOCAL: "homeport run-local"}
_MIGRATE = "homeport migrate --to="
_MIGRATIONS = {TO_YARN: YARN, TO_ZOOKEEPER: ZOOKEEPER}
_ENV = "env:"
_SERVER = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s\[\]:]+)(?::(\d{1,5}))?", re.ASCII)
_PORT, _PORT_MAX = 2181, 65535
"""ZooKeeper's own port stands where none is named."""


def coordinator_of(config: Config) -> str | None:
    """Return the short name of ``job.coordinator.factory``; None where it is not set."""
    given = keys.JOB_COORDINATOR_FACTORY.read(config)
    return None if given is None else _JAVA.get(given, given)


def require_coordinator(config: Config, wanted: str) -> None:
    """Require that ``job.coordinator.factory`` is ``wanted``, or missing.

    ConfigError: it is something else.
    """
    key = keys.JOB_COORDINATOR_FACTORY
    given = key.read(config)
    meant = wanted if given is None else _JAVA.get(given, given)
    if meant not in _COMMANDS:
        known = ", ".join((*_COMMANDS, *_JAVA))
        raise key.error(given, f"it must be one of {known}", f"write {wanted}")
    if meant != wanted:
        rule = f"{_COMMANDS[wanted]} needs {wanted}"
        remedy = f"start the job by {_COMMANDS[meant]}, or remove the key"
        raise key.error(given, rule, remedy)


def require_no_migration(recorded: Config) -> None:
    """Require that no migration between YARN and ZooKeeper is under way; ConfigError: one is."""
    key = keys.JOB_COORDINATOR_FACTORY
    found = key.read(recorded)
    if found in _MIGRATIONS:
        rule = "a migration of the job has begun, and is not finished"
        remedy = f"finish it by {_MIGRATE}{_MIGRATIONS[found]}"
        raise key.error(found, rule, remedy)


def require_never_standalone(recorded: Config) -> None:
    """Require that the recorded job ran on YARN last, or never ran.

    Epochs of YARN and generations of processors name the same transactional ids. ConfigError:
    processors that a user starts have run it, and may run.
    """
    require_no_migration(recorded)
    key = keys.JOB_COORDINATOR_FACTORY
    found = key.read(recorded)
    another = f"give the job another {keys.JOB_ID.name} and its stores other changelogs"
    if found == LOCAL:
        raise keys.JOB_ID.error(
            keys.JOB_ID.read(recorded) or "1",
            "homeport run-local has run the job of this name and id, without --trial, and could "
            "still write",
            f"{another}, and try jobs by run-local --trial, which leaves them to run-job",
        )
    if found == ZOOKEEPER:
        rule = f"{_COMMANDS[found]} has run a job of this name and id, and could still write"
        raise key.error(found, rule, f"run {_MIGRATE}{YARN}, or {another}")


@dataclass(frozen=True, slots=True)
class StandaloneConfig:
    """Views of the keys; times in ms.

    ``connect``: ZooKeeper's servers. ``root``: the path of all jobs, behind the one that is named
    with the servers, without a slash at its end. ``admin_port``: the port of each AdminServer.
    """

    connect: str
    root: str
    session_timeout_ms: Annotated[int, keys.JOB_COORDINATOR_ZK_SESSION_TIMEOUT_MS]
    connection_timeout_ms: Annotated[int, keys.JOB_COORDINATOR_ZK_CONNECTION_TIMEOUT_MS]
    consensus_timeout_ms: Annotated[int, keys.JOB_COORDINATOR_ZK_CONSENSUS_TIMEOUT_MS]
    debounce_ms: Annotated[int, keys.JOB_DEBOUNCE_TIME_MS]
    admin_port: Annotated[int, keys.JOB_COORDINATOR_ZK_ADMIN_PORT]
    access: ZooKeeperAccess = NO_ACCESS

    @staticmethod
    def of(config: Config) -> StandaloneConfig:
        """Return the view of ``config``.

        ConfigError: a key is missing or breaks its rule, or asks for what processors that users
        start cannot do.
        """
        require_coordinator(config, ZOOKEEPER)
        connect = keys.JOB_COORDINATOR_ZK_CONNECT.read(config)
        if connect is None:
            rule = "processors find each other by ZooKeeper"
            remedy = "write host:port of its servers, or run the job by homeport run-local"
            raise keys.JOB_COORDINATOR_ZK_CONNECT.error(None, rule, remedy)
        if not keys.JOB_COORDINATOR_READ_OPEN.read(config):
            raise keys.JOB_COORDINATOR_READ_OPEN.error(
                "false",
                "processors read what the others do, and share no token",
                "remove the key, and let a firewall or "
                f"{keys.JOB_COORDINATOR_URL_HOST.name} say which programs reach their ports",
            )
        servers, _, path = connect.partition("/")
        _check_servers(servers)
        return StandaloneConfig(
            connect=servers,
            root=f"/{path}".rstrip("/") + _root(config),
            access=ZooKeeperAccess.of(config),
            **values_of(StandaloneConfig, config),
        )


def location_id(config: Config, environ: Mapping[str, str], host_name: str) -> str:
    """Return where a processor runs: ``job.location-id``, else ``host_name``.

    ConfigError: the variable that it names is not set.
    """
    key = keys.JOB_LOCATION_ID
    given = key.read(config)
    if given is None:
        return host_name.strip().lower()
    if not given.startswith(_ENV):
        return given
    variable = given.removeprefix(_ENV)
    found = environ.get(variable, "").strip()
    if not found:
        rule = f"the environment variable {variable!r} must say where this processor runs"
        raise key.error(given, rule, f"set {variable}, or write the location itself")
    return found


def refuse_standbys(config: Config) -> None:
    """Require that the job has no standbys; ConfigError where it has."""
    if StandbyConfig.of(config).enabled:
        rule = "homeport run-local runs the whole job in one place, where a standby has none"
        remedy = "write false, or run the job by homeport run-processor"
        raise keys.JOB_HOT_STANDBY_ENABLED.error("true", rule, remedy)


def check_mixed_roles(config: Config) -> None:
    """Require standbys where containers have both roles; ConfigError: the job has none."""
    key = keys.JOB_CONTAINER_MIXED_ROLES
    if key.read(config) and not StandbyConfig.of(config).enabled:
        rule = "it puts standby tasks beside active ones, and the job has no standbys"
        remedy = f"set {keys.JOB_STANDBY_TASKS_REPLICATION_FACTOR.name}=2, or remove the key"
        raise key.error("true", rule, remedy)


def _check_servers(servers: str) -> None:
    for server in servers.split(","):
        found = _SERVER.fullmatch(server.strip())
        if found is None or not 0 < int(found[1] or _PORT) <= _PORT_MAX:
            rule = f"{server.strip()!r} is not of the form host:port"
            remedy = "write host:port of each server, separated by commas"
            raise keys.JOB_COORDINATOR_ZK_CONNECT.error(servers, rule, remedy)


def _root(config: Config) -> str:
    key = keys.JOB_COORDINATOR_ZK_ROOT
    root = key.read(config) or ""
    parts = root.split("/")
    if parts[0] or not parts[1:] or any(part in {"", ".", ".."} for part in parts[1:]):
        rule = "it must be a path in ZooKeeper, such as /homeport"
        raise key.error(root, rule, "write names, each behind a slash")
    if "zookeeper" in parts[1:2]:
        raise key.error(root, "that path is ZooKeeper's own", "write another one")
    return root
