"""Reads a job's configuration from its properties file and the command line.

The one module of ``config`` that does I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import javaproperties

from homeport.config.config import Config
from homeport.config.errors import ConfigError

_OPTION = "--config-path"
_REMEDY = "give the path, or file: URL, of a properties file"


def load(config_path: str, overrides: Sequence[str] = ()) -> Config:
    """The configuration in the file, with ``overrides`` laid on top.

    Each override is ``key=value``; the last one of a key wins.

    The file is a Java properties file, in UTF-8 or, where it is not UTF-8, in ISO-8859-1 as Java
    reads it.

    Raises:
        ConfigError: the file cannot be read or is malformed, or an override has no ``=``.
    """
    return Config(_properties(config_path)).merged(dict(_override(item) for item in overrides))


def _override(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals or not key.strip():
        raise ConfigError(
            "--config", item, "it must have the form key=value", "write --config key=value"
        )
    return key.strip(), value.strip()


def _properties(config_path: str) -> dict[str, str]:
    try:
        data = _path(config_path).read_bytes()
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
        return javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(
            _OPTION,
            config_path,
            f"it holds the malformed escape {error.escape!r}",
            "write \\u and four hexadecimal digits, or \\\\ for a backslash",
        ) from None


def _path(config_path: str) -> Path:
    url = urlsplit(config_path)
    if not url.scheme:
        return Path(config_path)
    if url.scheme != "file" or url.netloc not in {"", "localhost"}:
        raise ConfigError(_OPTION, config_path, "only files of this machine can be read", _REMEDY)
    return Path(unquote(url.path))
