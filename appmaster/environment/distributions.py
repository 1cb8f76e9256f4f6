"""The installed packages for a job's nodes: homeport, and all that it requires."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from homeport.config.errors import HomeportError

HOMEPORT = "homeport"
_OLDEST_GLIBC = (2, 17)
_LEGACY_GLIBC = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_")
_NOT_SHIPPED = frozenset({"INSTALLER", "REQUESTED", "direct_url.json"})
"""Records of a package's installation: they may differ where the package is the same."""
_TESTS = "tests"
_CONNECT_SHELL = ("pyspark", "jars", "connect-repl")
"""Jars of Spark Connect's interactive shell: no class path of Spark has this folder."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One installed package; ``files``: {path below site-packages: location} of those to pack."""

    name: str
    version: str
    files: dict[str, Path]
    digest: str


def required(extras: frozenset[str] = frozenset()) -> list[Installed]:
    """Return homeport and all packages that it requires, by name, from this interpreter.

    ``extras``: the extras of homeport to include, such as ``avro``.

    HomeportError: a package is not installed or lists no files, or homeport is only linked.
    """
    found: dict[str, metadata.Distribution] = {}
    _collect(HOMEPORT, extras, found)
    return [_installed(name, found[name]) for name in sorted(found)]


def _collect(name: str, extras: frozenset[str], found: dict[str, metadata.Distribution]) -> None:
    canonical = canonicalize_name(name)
    if canonical in found and not extras:
        return
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise HomeportError(
            f"the package {name!r} is not installed here, and homeport requires it: "
            f"repeat the installation of homeport (pip install homeport)"
        ) from None
    found[canonical] = distribution
    for text in distribution.requires or ():
        requirement = Requirement(text)
        if _applies(requirement, extras):
            _collect(requirement.name, frozenset(requirement.extras), found)


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": e}) for e in ("", *extras))


def _installed(name: str, distribution: metadata.Distribution) -> Installed:
    listed = distribution.files
    if listed is None:
        raise HomeportError(
            f"the package {name!r} has no list of its files (RECORD), so it cannot be packed: "
            "install it by pip in a virtual environment"
        )
    files = {
        path.as_posix(): Path(str(distribution.locate_file(path)))
        for path in listed
        if travels(path)
    }
    _require_whole(name, files)
    record = "\n".join(sorted(f"{p.as_posix()} {p.hash and p.hash.value}" for p in listed))
    return Installed(
        name=name,
        version=distribution.version,
        files=files,
        digest=hashlib.sha256(f"{name} {distribution.version}\n{record}".encode()).hexdigest(),
    )


def travels(path: PurePath) -> bool:
    """Return whether to pack this file of a package: not where no job can use it.

    Tests inside packages, and Spark's shell, are a tenth of all bytes and a quarter of all files.
    Each host would have to unpack them.
    """
    inner = path.parts[1:-1]
    return (
        path.name not in _NOT_SHIPPED
        and _TESTS not in inner
        and path.parts[: len(_CONNECT_SHELL)] != _CONNECT_SHELL
    )


def _require_whole(name: str, files: dict[str, Path]) -> None:
    """Refuse an editable installation of homeport: its list of files lacks the modules."""
    if name == HOMEPORT and "homeport/appmaster/environment/distributions.py" not in files:
        raise HomeportError(
            "homeport is linked into this environment, not installed, so it cannot be packed: "
            "install it (pip install .)"
        )


def versions_in(site_packages: Path) -> dict[str, str]:
    """Return {package: version} of all packages in ``site_packages``, by name."""
    found = metadata.distributions(path=[str(site_packages)])
    return dict(sorted((canonicalize_name(d.name), d.version) for d in found))


def needed_glibc(site_packages: Path, own: tuple[int, int]) -> tuple[int, int]:
    """Return the oldest glibc that can load all packages in ``site_packages``.

    ``own``: this machine's glibc, which a package that was built here may need.
    """
    found = metadata.distributions(path=[str(site_packages)])
    return max((_glibc_of_wheel(_tags(d), own) for d in found), default=_OLDEST_GLIBC)


def _tags(distribution: metadata.Distribution) -> Iterator[str]:
    for line in (distribution.read_text("WHEEL") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "Tag":
            yield value.strip().rpartition("-")[2]


def _glibc_of_wheel(tags: Iterable[str], own: tuple[int, int]) -> tuple[int, int]:
    """Return the oldest glibc that a wheel runs with: any one of its tags suffices."""
    bound = [_glibc_of(tag, own) for tag in tags if tag != "any"]
    return max(_OLDEST_GLIBC, min(bound)) if bound else _OLDEST_GLIBC


def _glibc_of(tag: str, own: tuple[int, int]) -> tuple[int, int]:
    legacy = _LEGACY_GLIBC.get(tag.partition("_")[0])
    if legacy is not None:
        return legacy
    numbers = _MANYLINUX.match(tag)
    return (int(numbers[1]), int(numbers[2])) if numbers else own
