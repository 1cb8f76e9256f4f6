"""The job's own code: a folder, zip or tar.gz that YARN localises as ``__package``.

Source: Samza 1.8, which localises a job's package under this name.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from homeport.appmaster.yarn.hadoop_files import HadoopFiles
from homeport.appmaster.yarn.package_zip import unpack_tar, unpack_zip, zip_folder
from homeport.config.errors import ConfigError, HomeportError, in_one_line

PACKAGE_KEY = "yarn.package.path"
PACKAGE_NAME = "__package"

_ARCHIVE_SUFFIXES = (".zip", ".tar.gz", ".tgz")


@dataclass(frozen=True, slots=True)
class PreparedPackage:
    """A package ready to be shipped.

    ``archive``: path or URL of the file to localise; ``import_path``: it, unpacked here as hosts
    unpack it, for PYTHONPATH; ``zip_path``: it here, where it is a zip.
    """

    archive: Path | str
    import_path: Path
    zip_path: Path | None


def package_path(value: str | None, *, may_be_none: bool = False) -> Path | str | None:
    """The path that ``yarn.package.path`` means, which exists and is a folder, zip or tar.gz.

    None where the key is missing and ``may_be_none``, as of a job that is SQL alone. A URL of the
    cluster's file system, as ``hdfs:``, stays as it is; ``prepared`` looks for it.

    Raises:
        ConfigError: the key is missing, or names nothing of the kind.
    """
    if value is None:
        if may_be_none:
            return None
        raise ConfigError(
            PACKAGE_KEY,
            None,
            "it is required",
            "let it name the folder, zip or tar.gz with the job's Python code",
        )
    parts = urlsplit(value)
    if parts.scheme not in {"", "file"}:
        if not value.endswith(_ARCHIVE_SUFFIXES):
            raise ConfigError(
                PACKAGE_KEY,
                value,
                "in the cluster's file system it must be a .zip, .tar.gz or .tgz",
                "pack it as one of these",
            )
        return value
    path = Path(unquote(parts.path) if parts.scheme else value).expanduser().absolute()
    if not path.exists():
        raise ConfigError(
            PACKAGE_KEY, value, f"{path} does not exist", "correct the path or build the package"
        )
    if path.is_file() and not path.name.endswith(_ARCHIVE_SUFFIXES):
        raise ConfigError(
            PACKAGE_KEY,
            value,
            "it must be a folder, .zip, .tar.gz or .tgz",
            "pack it as one of these",
        )
    return path


@contextlib.contextmanager
def prepared(
    place: Path | str | None, open_files: Callable[[], AbstractContextManager[HadoopFiles]]
) -> Iterator[PreparedPackage]:
    """The package, packed or unpacked as need be; temporary files are gone afterwards.

    Args:
        place: as of ``package_path``; None: a package without code.
        open_files: gives access to the cluster's file system, for a package that is there.

    Raises:
        ConfigError: an archive that is not there or cannot be read, or an unreadable folder.
        UnavailableError: the cluster's file system does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="homeport-package-") as name:
        folder = Path(name)
        if place is None:
            place = folder / "no-code"
            place.mkdir()
            # An archive without any entry is a strange thing to some.
            (place / "README").write_text("This job has no code of its own.\n", encoding="utf-8")
        if isinstance(place, str):
            fetched = _fetched(place, folder, open_files)
            yield replace(_prepared(fetched, place, folder), archive=place)
        else:
            yield _prepared(place, str(place), folder)


def _fetched(
    url: str, folder: Path, open_files: Callable[[], AbstractContextManager[HadoopFiles]]
) -> Path:
    """A copy of the package in the cluster's file system."""
    target = folder / url.rpartition("/")[2]
    with open_files() as files:
        if files.facts(url) is None:
            raise ConfigError(
                PACKAGE_KEY, url, "there is no such file", "correct the URL or upload the package"
            )
        files.get(url, target)
    return target


def _prepared(path: Path, named: str, folder: Path) -> PreparedPackage:
    """The package at ``path``, which the user has ``named``; ``folder`` takes temporary files."""
    try:
        unpacked = folder / "unpacked" / path.name
        if path.is_dir():
            made = zip_folder(path, folder / "package.zip")
            return PreparedPackage(made, unpack_zip(made, unpacked), made)
        if path.name.endswith(".zip"):
            return PreparedPackage(path, unpack_zip(path, unpacked), path)
        return PreparedPackage(path, unpack_tar(path, unpacked), None)
    except HomeportError:
        raise
    except Exception as e:  # noqa: BLE001 - each way to compress has errors of its own
        raise ConfigError(
            PACKAGE_KEY, named, f"it cannot be read ({in_one_line(e)})", "build the package again"
        ) from None


def zipped(package: PreparedPackage) -> bytes:
    """Return it as one zip: a zip as it is, equal folders as equal bytes."""
    if package.zip_path is not None:
        return package.zip_path.read_bytes()
    with tempfile.TemporaryDirectory(prefix="homeport-upgrade-") as folder:
        return zip_folder(package.import_path, Path(folder) / "package.zip").read_bytes()


def digest_of(package: PreparedPackage) -> str:
    """Return the name that an upgrade to the same code has for ``package``."""
    if package.zip_path is None:
        return package_name(zipped(package))
    with package.zip_path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def package_name(data: bytes) -> str:
    """Return the name of the package in coordinator stream, AM and launchers."""
    return hashlib.sha256(data).hexdigest()
