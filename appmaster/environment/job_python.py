"""The Python of a job's processes: an interpreter that every node has, or an archive that travels.

``yarn.python.executable`` names the first, ``yarn.python.archive`` the second.
"""

import contextlib
import hashlib
import os
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from urllib.parse import unquote, urlsplit

from homeport.appmaster.environment import node
from homeport.appmaster.environment.tree import DESCRIPTION_NAME, START_NAME, UNPACKING, describe
from homeport.appmaster.yarn.hadoop_files import FileFacts, HadoopFiles
from homeport.appmaster.yarn.submission import NodePython
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import YarnConfig
from homeport.job_coordinator.own_folders import cache_folder
from homeport.job_coordinator.python_environment import is_archive

_REMEDY = "let it name an archive that `homeport pack` has made"
_KEY = keys.YARN_PYTHON_ARCHIVE.name


@dataclass(frozen=True, slots=True)
class JobPython:
    """The Python of a job. ``here``: the command that starts it on this machine.

    ``key``, ``value``: of the configuration that names it. ``upload``: the local archive that
    ``published`` uploads; None: nothing to upload.
    """

    node: NodePython
    here: tuple[str, ...]
    key: str
    value: str
    upload: Path | None = None


def job_python(
    config: Config,
    environment: Mapping[str, str],
    open_files: Callable[[], contextlib.AbstractContextManager[HadoopFiles]],
    say: Callable[[str], None],
) -> JobPython:
    """Return the Python in the configuration, checked as far as this machine can.

    An archive is unpacked into the cache, once: the job's classes are checked with it.

    ConfigError: it does not exist, is not a Python or an environment, or both keys are set.
    UnavailableError: the cluster's file system does not answer.
    """
    yarn = YarnConfig.of(config)
    if yarn.python_archive is None:
        return interpreter(yarn.python_executable)
    if yarn.python_executable is not None:
        rule = f"{keys.YARN_PYTHON_EXECUTABLE.name} is set too, and one job has one Python"
        raise ConfigError(_KEY, yarn.python_archive, rule, "remove one of the two")
    cache = cache_folder(environment) / "environments"
    local = _local_path(yarn.python_archive)
    if local is not None:
        return _from_local(yarn.python_archive, local, cache, say)
    with open_files() as files:
        return _from_cluster(yarn.python_archive, files, cache, say)


def interpreter(given: str | None) -> JobPython:
    """Return the interpreter ``given``, by default the one that runs this.

    ConfigError: it does not exist, or this user may not run it.
    """
    python = given or sys.executable
    key = keys.YARN_PYTHON_EXECUTABLE.name
    if not Path(python).is_absolute():
        raise ConfigError(key, python, "it must be an absolute path", "write the whole path")
    if not Path(python).exists():
        raise ConfigError(
            key, python, "there is no such file", "name the interpreter that has homeport installed"
        )
    if not os.access(python, os.X_OK) or Path(python).is_dir():
        raise ConfigError(
            key, python, "it is no program that may be run", "name a Python interpreter"
        )
    return JobPython(NodePython.installed(python), (python,), key, python)


def published(
    python: JobPython,
    open_files: Callable[[], contextlib.AbstractContextManager[HadoopFiles]],
    say: Callable[[str], None],
) -> JobPython:
    """Return ``python`` with its archive in the user's folder of the cluster, where it stays.

    The archive is named by its content: it is sent once, and a node unpacks it once, however many
    applications use it.

    UnavailableError: the cluster's file system does not take it.
    """
    if python.upload is None:
        return python
    with open_files() as files:
        url = f"{files.home()}/.homeport/environments/{python.upload.name}"
        size = python.upload.stat().st_size
        found = files.facts(url)
        if found is None or found.size != size:
            say(f"uploading the environment ({size / 1e6:.0f} MB) to {url}")
            files.put(python.upload, url)
    return replace(python, node=replace(python.node, archive=url), upload=None)


def _local_path(value: str) -> Path | None:
    """Return the path on this machine; None where ``value`` is a path of the cluster."""
    parts = urlsplit(value)
    if parts.scheme not in {"", "file"}:
        return None
    return Path(unquote(parts.path) if parts.scheme else value).expanduser().absolute()


def _from_local(value: str, path: Path, cache: Path, say: Callable[[str], None]) -> JobPython:
    if not path.is_file():
        raise ConfigError(_KEY, value, f"there is no file {path}", _REMEDY)
    _require_suffix(value)
    tree = _tree_of_packed(path, cache)
    if tree is None:
        facts = path.stat()
        known_as = f"{path} {facts.st_size} {facts.st_mtime_ns}"
        tree = _unpacked(value, known_as, cache, lambda _: path, say)
    return JobPython(
        NodePython.travelling(str(path), _start()), _here(tree), _KEY, value, upload=path
    )


def _from_cluster(
    value: str, files: HadoopFiles, cache: Path, say: Callable[[str], None]
) -> JobPython:
    _require_suffix(value)
    facts: FileFacts | None = files.facts(value)
    if facts is None:
        raise ConfigError(_KEY, value, "there is no such file", _REMEDY)

    def fetch(folder: Path) -> Path:
        target = folder / "fetched.tar.gz"
        files.get(value, target)
        return target

    known_as = f"{value} {facts.size} {facts.modified_ms}"
    tree = _unpacked(value, known_as, cache, fetch, say)
    return JobPython(NodePython.travelling(value, _start()), _here(tree), _KEY, value)


def _start() -> str:
    return str(resources.files(node).joinpath(START_NAME))


def _require_suffix(value: str) -> None:
    if not is_archive(value):
        raise ConfigError(_KEY, value, "it must be a .tar.gz or .tgz", _REMEDY)


def _tree_of_packed(path: Path, cache: Path) -> Path | None:
    """Return the tree of an archive that was packed here, or that this program itself runs in."""
    identity = path.name.removeprefix("homeport-").removesuffix(".tar.gz")
    candidates = (Path(sys.prefix), cache / identity)
    return next((t for t in candidates if describe(t).get("identity") == identity), None)


def _here(tree: Path) -> tuple[str, ...]:
    if tree == Path(sys.prefix):
        return (sys.executable,)
    return ("bash", str(tree / START_NAME))


def _unpacked(
    value: str,
    known_as: str,
    cache: Path,
    fetch: Callable[[Path], Path],
    say: Callable[[str], None],
) -> Path:
    tree = cache / f"unpacked-{hashlib.sha256(known_as.encode()).hexdigest()[:16]}"
    if describe(tree):
        os.utime(tree)  # homeport pack removes what is not used
        return tree
    say(f"unpacking {value} to check the job with it (once)")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=UNPACKING, dir=cache) as name:
        folder = Path(name)
        try:
            with tarfile.open(fetch(folder)) as archive:
                archive.extractall(folder / "tree", filter="tar")
        except (OSError, tarfile.TarError, EOFError) as error:
            raise ConfigError(_KEY, value, f"it cannot be unpacked ({error})", _REMEDY) from None
        if not describe(folder / "tree"):
            rule = f"it is no environment of homeport: it has no {DESCRIPTION_NAME}"
            raise ConfigError(_KEY, value, rule, _REMEDY)
        with contextlib.suppress(OSError):  # another run-job was first
            (folder / "tree").rename(tree)
    return tree
