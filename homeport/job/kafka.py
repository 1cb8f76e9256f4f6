"""Kafka and env: how a job in Python reaches its brokers, without a secret in its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from homeport.config.declarations.system_keys import BROKERS_VARIABLE
from homeport.config.errors import ConfigError
from homeport.job.declared_keys import Late

_NO_BROKERS = "localhost:9092"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True)
class Env(Late):
    """The value of an environment variable, read where a command takes the job's configuration."""

    name: str

    def text(self, key: str, environment: Mapping[str, str]) -> str:
        """Return the variable's value; ConfigError where it is not set."""
        found = environment.get(self.name)
        if found is None:
            rule = f"the environment variable {self.name} is not set"
            raise ConfigError(key, None, rule, "set it where this command runs")
        return found


def env(name: str) -> Env:
    """Return the value of the variable ``name``, for a secret that the file must not have.

    The commands that take the job's configuration read it; containers do not need it.
    """
    return Env(name)


@dataclass(frozen=True)
class _Brokers(Late):
    def text(self, key: str, environment: Mapping[str, str]) -> str:  # noqa: ARG002 - as of Late
        return environment.get(BROKERS_VARIABLE) or _NO_BROKERS


@dataclass(frozen=True)
class _TextOf(Late):
    path: Path

    def text(self, key: str, environment: Mapping[str, str]) -> str:  # noqa: ARG002 - as of Late
        try:
            return self.path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            rule = f"it cannot be read ({reason})"
            raise ConfigError(key, str(self.path), rule, "give the path of a PEM file") from None


@dataclass(frozen=True)
class _Login(Late):
    module: str
    user: str
    password: Env

    def text(self, key: str, environment: Mapping[str, str]) -> str:
        user, password = map(_quoted, (self.user, self.password.text(key, environment)))
        return f"{self.module} required username={user} password={password};"


@dataclass(frozen=True)
class _Servers(Late):
    given: Late

    def text(self, key: str, environment: Mapping[str, str]) -> str:
        found = self.given.text(key, environment)
        _require_servers(key, found)
        return found


def _require_servers(key: str, text: str) -> None:
    """Require HOST:PORT of one broker or more; librdkafka skips empty parts."""
    servers = [server for server in map(str.strip, text.split(",")) if server]
    for server in servers or [text]:
        host, _, port = server.rpartition(":")
        if not host or not (port.isascii() and port.isdecimal()):
            rule, remedy = f"{server!r} is not HOST:PORT", "write it so, as in broker:9092"
            raise ConfigError(key, text, rule, remedy)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True, kw_only=True)
class Kafka:
    """The brokers of a job, and the user as which it logs in.

    Args:
        servers: HOST:PORT of brokers, with commas between them, or a variable that has them, as
            in ``env("BROKERS")``; default ``$HOMEPORT_BOOTSTRAP_SERVERS``.
        sasl: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; with ``user`` and ``password``.
        user: of Kafka.
        password: where it is, as in ``env("KAFKA_PASSWORD")``.
        ca: a PEM file of the authorities that signed the brokers' certificates; with it, or with
            ``tls``, the connection is encrypted.
        tls: whether the connection is encrypted.

    Raises:
        ConfigError: the arguments do not fit each other.
    """

    servers: str | Env | None = None
    sasl: str | None = None
    user: str | None = None
    password: Env | None = None
    ca: str | Path | None = None
    tls: bool = False

    def __post_init__(self) -> None:
        servers: object = self.servers
        if isinstance(servers, str):
            if servers:
                _require_servers("Kafka.servers", servers)
        elif servers is not None and not isinstance(servers, Late):
            rule = f"it is text, or env(...), not {type(servers).__name__}"
            remedy = 'write it as in "broker:9092,other:9092"'
            raise ConfigError("Kafka.servers", str(servers), rule, remedy)
        if self.sasl is not None and self.sasl not in _LOGIN_MODULES:
            remedy = f"give {', '.join(_LOGIN_MODULES)}, or write the keys of another into keys="
            raise ConfigError("Kafka.sasl", self.sasl, "there is no such mechanism here", remedy)
        given: object = self.password
        if given is not None and not isinstance(given, Env):
            rule, remedy = "a job's file has no password", 'write password=env("KAFKA_PASSWORD")'
            raise ConfigError("Kafka.password", None, rule, remedy)
        login = {"sasl": self.sasl, "user": self.user, "password": self.password}
        missing = [name for name, value in login.items() if value is None]
        if 0 < len(missing) < len(login):
            rule = "sasl, user and password go together"
            raise ConfigError(f"Kafka.{missing[0]}", None, rule, "give all three, or none")


def keys_of(kafka: Kafka, system: str, folder: Path) -> dict[str, str | Late]:
    """Return the keys of ``system``; the path of ``kafka.ca`` begins in ``folder``."""
    at = f"systems.{system}.consumer"
    servers = _Servers(kafka.servers) if isinstance(kafka.servers, Late) else kafka.servers
    made: dict[str, str | Late] = {f"{at}.bootstrap.servers": servers or _Brokers()}
    is_encrypted = kafka.tls or kafka.ca is not None
    if kafka.sasl is not None or is_encrypted:
        parts = "SASL" if kafka.sasl is not None else "", "SSL" if is_encrypted else "PLAINTEXT"
        made[f"{at}.security.protocol"] = "_".join(filter(None, parts))
    if kafka.sasl is not None and kafka.user is not None and kafka.password is not None:
        made[f"{at}.sasl.mechanism"] = kafka.sasl
        login = _Login(_LOGIN_MODULES[kafka.sasl], kafka.user, kafka.password)
        made[f"{at}.sasl.jaas.config"] = login
    if kafka.ca is not None:
        made[f"{at}.ssl.truststore.type"] = "PEM"
        place = folder / Path(kafka.ca).expanduser()
        made[f"{at}.ssl.truststore.certificates"] = _TextOf(place)
    return made
