"""The text of ``task.pipeline.sql``: load it, and find names in it."""

import contextlib
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from homeport.config.errors import ConfigError
from homeport.config.settings.pipeline_section import SQL_FILE

_TOKEN = re.compile(
    r"""
      (?P<skipped> \s+ | --[^\n]* | /\*.*?\*/ )
    | (?P<quoted> '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | `(?:``|[^`])*` )
    | (?P<word> \w+ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def load_sql(key: str, value: str) -> str:
    """Return the statement in ``value``, or in the file of the package that it names.

    The file is searched as modules are. A semicolon at the end is removed.

    Raises:
        ConfigError: there is no such file, it is no text, or it has no statement.
    """
    text = _file_text(key, value) if value.startswith(SQL_FILE) else value
    statement = text.strip().removesuffix(";").strip()
    if not any(kind != "skipped" for kind, _, _ in _tokens(statement)):
        raise ConfigError(key, value, "there is no statement in it", "write one SELECT")
    return statement


def _file_text(key: str, value: str) -> str:
    name = value.removeprefix(SQL_FILE).strip()
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts:
        remedy = "write the file's path in the package, such as file:totals.sql"
        raise ConfigError(key, value, "it must name a file of the job's package", remedy)
    try:
        data = next(filter(None, (_found(Path(folder), path) for folder in sys.path)), None)
        if data is not None:
            return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise ConfigError(
            key, value, f"the file cannot be read ({error})", "write it in UTF-8"
        ) from None
    rule = f"there is no file {name!r} in the job's package"
    raise ConfigError(key, value, rule, "see that it is in yarn.package.path, and not empty")


def _found(folder: Path, path: PurePosixPath) -> bytes | None:
    """Return the content of the file in that folder or zip; both may be packages."""
    if (folder / path).is_file():
        return (folder / path).read_bytes()
    if folder.suffix == ".zip" and folder.is_file():
        with zipfile.ZipFile(folder) as archive, contextlib.suppress(KeyError):
            return archive.read(str(path))
    return None


def mentioned(statement: str, names: Iterable[str]) -> list[str]:
    """Return ``names`` that may be tables of ``statement``: all of its tables, perhaps more."""
    lowered = statement.lower()
    return [name for name in names if name.lower().replace("`", "``") in lowered]


def identifiers(statement: str, names: Iterable[str]) -> list[str]:
    """Return ``names`` that are identifiers in ``statement``, of tables or of others."""
    found = set()
    for kind, text, _ in _tokens(statement):
        if kind == "word":
            found.add(text.lower())
        elif text.startswith("`"):
            found.add(text[1:-1].replace("``", "`").lower())
    return [name for name in names if name.lower() in found]


def quoted(name: str) -> str:
    """Return ``name`` as a quoted identifier of SQL."""
    return "`" + name.replace("`", "``") + "`"


def _tokens(statement: str) -> Iterator[tuple[str, str, int]]:
    for match in _TOKEN.finditer(statement):
        yield match.lastgroup or "", match.group(), match.start()
