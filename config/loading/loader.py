"""Reads a job's configuration from its properties file, the command line and its rewriters.

The one module of ``config`` that does I/O.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, WireError
from homeport.config.kafka_names import SERVERS
from homeport.config.loading.declared_job import SUFFIX, DeclaredJob, job_in
from homeport.config.loading.properties_format import parse_properties
from homeport.config.loading.regex_topics import TopicsOf
from homeport.config.loading.rewriters import rewritten
from homeport.config.secret_names import shown_value

_OPTION = "--config-path"
_REMEDY = "give the path, or file: URL, of a properties file"
_URL = re.compile(r"file:|[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def load(
    config_path: str, overrides: Sequence[str] = (), topics_of: TopicsOf | None = None
) -> Config:
    """Return the configuration in the file, with ``overrides`` laid on top, and rewritten.

    Each override is ``key=value``; the last one of a key wins. Rewriters come last, in their order;
    without ``topics_of`` inputs by regular expression are left out.

    A file whose name ends in ``.py`` declares the job in Python (``job_in``). Any other
    is a Java properties file, in UTF-8 or, where it is not UTF-8, in ISO-8859-1 as Java
    reads it. A path is taken as it stands; in a URL of the form ``file:/p``, ``file:///p`` or
    ``file://localhost/p`` percent escapes are replaced. Where no key names the brokers of
    ``job.default.system``, after the rewriters, they are those of ``$HOMEPORT_BOOTSTRAP_SERVERS``.
    ConfigError: the file cannot be read or is malformed, an override has no ``=``, or a rewriter
    fails. UnavailableError: a rewriter needs Kafka, which does not answer.
    """
    given = Config(_given(config_path)).merged(dict(_override(item) for item in overrides))
    asked = None if topics_of is None else _of_environment(topics_of)
    return _with_brokers(rewritten(given, os.environ, asked), os.environ)


def _of_environment(topics_of: TopicsOf) -> TopicsOf:
    """Return ``topics_of`` for a configuration that a rewriter may still give its brokers."""
    return lambda config, system: topics_of(_with_brokers(config, os.environ), system)


def _with_brokers(config: Config, environment: Mapping[str, str]) -> Config:
    system = keys.JOB_DEFAULT_SYSTEM.read(config)
    servers = environment.get(keys.BROKERS_VARIABLE, "").strip()
    if system is None or not servers:
        return config
    known = [
        role.named(system, name)
        for role in (keys.SYSTEM_CONSUMER, keys.SYSTEM_PRODUCER)
        for name in SERVERS
    ]
    return config if any(map(config.get_str, known)) else config.merged({known[0]: servers})


def _override(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals or not key.strip():
        shown = shown_value(item, item)
        raise ConfigError(
            "--config", shown, "it must have the form key=value", "write --config key=value"
        )
    try:
        item.encode()
    except UnicodeEncodeError:  # bytes of the command line that are no text
        raise ConfigError(
            "--config", ascii(key), "it must be UTF-8", "write key and value in UTF-8"
        ) from None
    return key.strip(), value.strip()


def _given(config_path: str) -> Mapping[str, str]:
    job = declared_job(config_path)
    return (
        _properties(config_path, _path(config_path)) if job is None else job.config_of(os.environ)
    )


def declared_job(config_path: str) -> DeclaredJob | None:
    """Return the job that a Python file declares; None where the file has properties.

    ConfigError: as of ``job_in``.
    """
    path = _path(config_path)
    return job_in(path) if path.suffix == SUFFIX else None


def _properties(config_path: str, path: Path) -> dict[str, str]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(_OPTION, config_path, "there is no such file", _REMEDY) from None
    except IsADirectoryError:
        raise ConfigError(_OPTION, config_path, "it is a folder", _REMEDY) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(_OPTION, config_path, f"it cannot be read ({reason})", _REMEDY) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    try:
        return parse_properties(text)
    except WireError as error:
        raise ConfigError(
            _OPTION,
            config_path,
            str(error),
            "write \\u and four hexadecimal digits, or \\\\ for a backslash",
        ) from None


def _path(config_path: str) -> Path:
    if _URL.match(config_path) is None:
        return Path(config_path)
    url = urlsplit(config_path)
    if url.scheme != "file" or url.netloc.lower() not in {"", "localhost"}:
        raise ConfigError(_OPTION, config_path, "only files of this machine can be read", _REMEDY)
    # A file's name may be any bytes: those that are not UTF-8 are kept as Python keeps them.
    return Path(unquote(url.path, errors="surrogateescape"))
