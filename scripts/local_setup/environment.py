"""The clone's own virtual environment ``.venv``: pinned packages, and homeport itself.

Made once, checked by stamps that are written last: what was interrupted has no stamp and is made
again. One lock per clone, so that two commands at once do not build over each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from local_setup.prerequisites import require_java_tools, want
from local_setup.progress import Progress, SetupError, run_logged

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
SHARE = VENV / "share" / "homeport"
BUILD = ROOT / "build"
LOG = BUILD / "setup.log"
PINS = ROOT / "scripts" / "constraints.txt"
PACKAGES = ("appmaster", "config", "container", "homeport", "job_coordinator", "local_cluster")
SHIPPED = ("docs", "docker/observability", "examples/flights", "scripts/check_history")
"""Folders of other places that the wheel has too."""

_BUILD_TOOLS = ("pip", "setuptools", "wheel")
_NEEDED_BYTES = 4 * 1024**3
"""1.1 GB stay in .venv; building pyspark's wheel needs the rest for a minute."""
_VENV_STAMP = SHARE / "environment.stamp"
_INSTALL_STAMP = SHARE / "homeport.stamp"
_ARCHIVE_STAMP = SHARE / "class-data.stamp"


_CONTAINER = "lib/python3.*/site-packages/homeport/container"


def cache_dir() -> Path:
    """Where downloads live that all clones share: HOMEPORT_CACHE_DIR or the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("HOMEPORT_CACHE_DIR") or f"{base}/homeport").expanduser().absolute()


def ensure(
    progress: Progress, *, java: bool, spark: bool, wanted: Iterable[str] = ()
) -> dict[str, str]:
    """Return the environment variables for a command of this clone; what it needs is then there.

    Args:
        progress: called for every step that really does something.
        java: the command starts Java programs (YARN, Kafka, Skein, Spark).
        spark: it starts Spark sessions, so the class-data archive must be up to date.
        wanted: keys of ``prerequisites.WANTED``: what it uses where it can be had.

    SetupError: something is missing or failed; the message has the remedy.
    """
    env = {"HOMEPORT_CACHE_DIR": str(cache_dir())}
    with _exclusive(progress):
        home = None
        if java or spark:
            home = require_java_tools(progress, LOG)
            env["JAVA_HOME"] = str(home)
            if shutil.which("java") is None:
                env["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{home / 'bin'}"
        want([*wanted, "compiler"], progress, LOG)
        _ensure_packages(progress)
        _ensure_homeport(progress, home)
        _ensure_links()
        if spark and home is not None:
            _ensure_spark(progress, home)
    return env


@contextmanager
def _exclusive(progress: Progress) -> Iterator[None]:
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step("waiting for another set-up of this clone"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pins() -> list[str]:
    """The exact requirements of the constraints file, without comments."""
    lines = (line.split("#")[0].strip() for line in PINS.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def _ensure_packages(progress: Progress) -> None:
    # Not the patch version: any 3.11 found today may drive an environment that another one made.
    version = ".".join(platform.python_version_tuple()[:2])
    place = f"python {version} {platform.machine()} in {VENV}"
    digest = hashlib.sha256("\n".join(pins()).encode()).hexdigest()
    wanted = f"{place}\n{digest}\n"
    stamp = _read(_VENV_STAMP)
    if stamp == wanted and (VENV / "bin" / "python").exists():
        return
    progress.say(f"Making the Python environment {VENV} (about a minute, once)")
    LOG.unlink(missing_ok=True)
    _require_room()
    _VENV_STAMP.unlink(missing_ok=True)
    with _scratch() as scratch:
        env = _pip_env(scratch)
        if not stamp.startswith(place + "\n"):
            _new_venv(progress, env)
        pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--progress-bar=off"]
        tools = [pin for pin in pins() if pin.split("==")[0] in _BUILD_TOOLS]
        run_logged(progress, "build tools", [*pip, *tools], LOG, env=env)
        # The list is complete: nothing is resolved here, and "pip check" below proves it.
        exact = [*pip, "--no-deps", "--no-build-isolation", "-r", str(PINS)]
        run_logged(progress, f"{len(pins())} pinned packages", exact, LOG, env=env)
        run_logged(progress, "pip check", [*pip[:3], "check"], LOG, env=env)
    _write(_VENV_STAMP, wanted)


def _new_venv(progress: Progress, env: Mapping[str, str]) -> None:
    if VENV.is_symlink() or (VENV.exists() and not SHARE.is_dir()):
        raise SetupError(f"{VENV} is there but was not made by scripts/; move it away and repeat")
    if VENV.exists():
        with progress.step("removing an incomplete or outdated environment"):
            shutil.rmtree(VENV)
    SHARE.mkdir(parents=True)
    # It runs pip too, which would leave its temporary files elsewhere.
    command = [sys.executable, "-m", "venv", str(VENV)]
    run_logged(progress, "virtual environment", command, LOG, env=env)


def _require_room() -> None:
    free = shutil.disk_usage(ROOT).free
    if free < _NEEDED_BYTES:
        raise SetupError(
            f"{ROOT} has {free / 1e9:.1f} GB free, set-up needs {_NEEDED_BYTES / 1e9:.1f} GB; "
            "make room or move the clone to a larger disk"
        )


@contextmanager
def _scratch() -> Iterator[Path]:
    scratch = BUILD / "tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _pip_env(scratch: Path) -> dict[str, str]:
    """This environment without what would send pip's work elsewhere; mirrors stay as set."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_CONSTRAINT"}
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    return {
        **env,
        "TMPDIR": str(scratch),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }


def _package_files() -> list[Path]:
    files = [ROOT / n for n in ("setup.cfg", "setup.py", "pyproject.toml", "LICENSE")]
    for package in (*PACKAGES, *SHIPPED):
        for folder, below, names in os.walk(ROOT / package):
            below[:] = [name for name in below if name != "__pycache__"]
            files += (Path(folder, name) for name in names if not name.endswith((".pyc", ".so.1")))
    return sorted(file for file in files if file.is_file())


def copy_sources(target: Path) -> None:
    """``target``, a folder that need not exist, has what pip builds homeport from.

    pip builds from a copy: setuptools leaves build/ and *.egg-info where it builds.
    """
    for file in (*_package_files(), ROOT / "README.md"):
        copy = target / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file():
            shutil.copyfile(file, copy)


def _sources_digest() -> str:
    digest = hashlib.sha256()
    for file in _package_files():
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _ensure_homeport(progress: Progress, java_home: Path | None) -> None:
    """Install homeport from the tree, not editable: YARN runs what stands in site-packages.

    Its build compiles the classes for Spark's JVM where there is a Java, and the library of C++
    where there is a compiler. The tree gets that library too.
    """
    if list(VENV.glob("lib/python3.*/site-packages/homeport-dev.pth")):
        return  # a developer has linked the tree into this environment by hand
    wanted = _sources_digest() + "\n"
    has_classes = java_home is None or any(VENV.glob(f"{_CONTAINER}/spark/*.jar"))
    has_library = shutil.which("c++") is None or any((ROOT / "container/native").glob("*.so.1"))
    if _read(_INSTALL_STAMP) == wanted and has_classes and has_library:
        return
    _INSTALL_STAMP.unlink(missing_ok=True)
    with _scratch() as scratch:
        copy = scratch / "homeport"
        copy_sources(copy)
        command = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--force-reinstall", str(copy)]
        env = _pip_env(scratch)
        if java_home is not None:
            env["JAVA_HOME"] = str(java_home)
        run_logged(progress, "homeport into .venv", command, LOG, env=env)
    for former in (ROOT / "container" / "native").glob("*.so.1"):
        former.unlink()
    for library in VENV.glob(f"{_CONTAINER}/native/*.so.1"):
        shutil.copyfile(library, ROOT / "container" / "native" / library.name)
    _write(_INSTALL_STAMP, wanted)


def _ensure_links() -> None:
    """The tree of links by which the tools see the sources (scripts/link_namespace.sh)."""
    namespace = BUILD / "ns" / "homeport"
    own = ("cli", "docs", "examples", "job", "testing")
    linked = (*(p for p in PACKAGES if p != "homeport"), *own)
    # Without the package itself Python would take the installed one, and none of the sources.
    has_root = (namespace / "__init__.py").is_file()
    if not has_root or not all((namespace / package).is_dir() for package in linked):
        progress = Progress()
        run_logged(progress, "links", [str(ROOT / "scripts" / "link_namespace.sh")], LOG)


def _ensure_spark(progress: Progress, java_home: Path) -> None:
    """The class-data archive; Spark works without, and starts slower."""
    if not all((SHARE / name).is_file() for name in ("spark.command", "spark.jsa")):
        _ARCHIVE_STAMP.unlink(missing_ok=True)
    # The JVM ignores an archive of another build, other flags, or other jars and dates.
    digest = hashlib.sha256(_read(java_home / "release").encode())
    for source in ("jvm.py", "class_data.py"):
        digest.update((ROOT / "container" / "spark" / source).read_bytes())
    for jar in sorted(VENV.glob("lib/python3.*/site-packages/pyspark/jars/*.jar")):
        facts = jar.stat()
        digest.update(f"{jar} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    wanted = digest.hexdigest() + "\n"
    if _read(_ARCHIVE_STAMP) == wanted:
        return
    command = [str(VENV / "bin" / "python"), "-m", "homeport.container.spark.class_data"]
    env = {**os.environ, "JAVA_HOME": str(java_home)}
    try:
        run_logged(progress, "Spark class-data archive", [*command, str(SHARE)], LOG, env=env)
    except SetupError as error:
        progress.say(f"warning: Spark sessions will start slowly: {error}")
        return
    _write(_ARCHIVE_STAMP, wanted)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _write(path: Path, text: str) -> None:
    partial = path.with_suffix(".new")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
