"""What a machine must have before anything of ours can be made: JDK 17, Maven, libcrypt.so.1.

Missing things are installed where that is possible without asking (root on a system with apt-get);
everywhere else one message names all of them and how to get them. What only some tests use is
wanted, not needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from local_setup.progress import Progress, SetupError, run_logged

_NETWORK = {
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
"""As ``TOOLS`` of ``homeport.local_cluster.net.network``, which cannot be imported yet."""
_MANUAL_PAGES = Path("/usr/share/man/man1")
_SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/bin:/bin"
"""As root's PATH may lack the folders of the system's programs."""


@dataclass(frozen=True)
class Wanted:
    """Programs that some tests use: their Debian packages, by program, and those tests' name."""

    for_: str
    packages: dict[str, str]
    is_any_enough: bool = False


WANTED = {
    "network": Wanted("Tests of a network that breaks", _NETWORK),
    "docker": Wanted(
        "Clusters in containers",
        {
            "dockerd": "docker.io",
            "docker-compose": "docker-compose",
            "debootstrap": "debootstrap",
            **_NETWORK,
        },
    ),
    "browser": Wanted(
        "Tests of the dashboard",
        dict.fromkeys(("chromium", "chromium-browser", "google-chrome"), "chromium"),
        is_any_enough=True,
    ),
    "compiler": Wanted("The native path of input", {"c++": "g++"}),
    "shells": Wanted("Tests of completion in zsh and fish", {"zsh": "zsh", "fish": "fish"}),
}
"""Need -> what it takes. Any of the browsers speaks the protocol that the tests speak."""
JAVA_MAJOR = 17
"""Hadoop 3.5, Kafka 4.3 and Spark 4.3 all run on it; the class-data archives are made by it."""


@dataclass(frozen=True)
class Missing:
    """One thing that is not there: what it is for, and where it comes from."""

    what: str
    why: str
    apt_package: str


def find_java_home() -> Path | None:
    """Home of a Java 17: JAVA_HOME, the java on PATH, else the first in the usual folders."""
    for home in _candidates():
        if (home / "bin" / "java").is_file() and _major(home) == JAVA_MAJOR:
            return home
    return None


def _candidates() -> Iterator[Path]:
    named = os.environ.get("JAVA_HOME")
    if named:
        yield Path(named)
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for folder in ("/usr/lib/jvm", "/opt/java", "/opt", "/usr/java"):
        yield from sorted(Path(folder).glob("*"))
    for below_home in (".sdkman/candidates/java", ".jdks"):
        yield from sorted((Path.home() / below_home).glob("*"))


def _major(home: Path) -> int:
    """Major version from the ``release`` file that every JDK and JRE has; 0 if there is none."""
    try:
        lines = (home / "release").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 0
    for line in lines:
        key, _, value = line.partition("=")
        if key == "JAVA_VERSION":
            first = value.strip('" ').split(".")[0]
            return int(first) if first.isdigit() else 0
    return 0


def _missing() -> list[Missing]:
    found = []
    if find_java_home() is None:
        found.append(
            Missing(
                f"Java {JAVA_MAJOR} (JDK or JRE)", "YARN, Kafka, Spark", "openjdk-17-jre-headless"
            )
        )
    if shutil.which("mvn") is None:
        found.append(Missing("Maven (mvn)", "fetches the jars of YARN and Kafka", "maven"))
    try:
        ctypes.CDLL("libcrypt.so.1")
    except OSError:
        found.append(Missing("libcrypt.so.1", "TLS library inside Skein", "libcrypt1"))
    return found


def require_java_tools(progress: Progress, log: Path) -> Path:
    """The home of a Java 17, with Maven and libcrypt.so.1 there too; installs what is missing.

    SetupError: something is missing and cannot be installed from here; the message names all of it,
    in one go, with the command that would install it.
    """
    missing = _missing()
    if missing and _may_install():
        _install([m.apt_package for m in missing], progress, log)
        missing = _missing()
    home = find_java_home()
    if missing or home is None:
        raise SetupError(_advice(missing))
    return home


def want(needs: Iterable[str], progress: Progress, log: Path) -> None:
    """Install what those of ``WANTED`` lack, where that is possible; all of it in one go.

    Elsewhere the tests that need it name what they lack and are skipped.
    """
    missing = {need: packages for need in needs if (packages := _lacking(need))}
    if not missing or not _may_install():
        return
    try:
        _install(sorted({p for packages in missing.values() for p in packages}), progress, log)
    except SetupError:
        _each_by_itself(missing, progress, log)


def _each_by_itself(missing: dict[str, list[str]], progress: Progress, log: Path) -> None:
    """Install each need alone: one package that cannot be had costs its own tests only."""
    for need, packages in missing.items():
        try:
            _install(packages, progress, log)
        except SetupError as error:
            progress.say(f"{WANTED[need].for_} are left out: {error}")


def _lacking(need: str) -> list[str]:
    """Return the Debian packages of the programs that ``need`` lacks here."""
    wanted = WANTED[need]
    if need == "docker" and _has_engine():
        return []
    if wanted.is_any_enough and any(map(_has, wanted.packages)):
        return []
    return sorted({package for tool, package in wanted.packages.items() if not _has(tool)})


def _has(tool: str) -> bool:
    path = f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}"
    return shutil.which(tool, path=path) is not None


def _has_engine() -> bool:
    tools = (["docker", "version"], ["docker", "compose", "version"])
    try:
        return all(
            subprocess.run(t, capture_output=True, timeout=60, check=False).returncode == 0
            for t in tools
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(packages: list[str], progress: Progress, log: Path) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Java's package links its manual pages there, and fails where a slim image lacks the folder.
    with contextlib.suppress(OSError):
        _MANUAL_PAGES.mkdir(parents=True, exist_ok=True)
    update = ["apt-get", "update", "-q"]
    run_logged(progress, "package list (apt-get update)", update, log, env=env)
    install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
    run_logged(progress, f"system packages ({' '.join(packages)})", install, log, env=env)


def _advice(missing: list[Missing]) -> str:
    names = "\n".join(f"  {m.what}: {m.why}" for m in missing)
    packages = " ".join(m.apt_package for m in missing)
    return (
        f"this machine lacks:\n{names}\n"
        f"Install, on Debian or Ubuntu: sudo apt-get install {packages}\n"
        f"Elsewhere: any Java {JAVA_MAJOR} (found by JAVA_HOME, PATH or /usr/lib/jvm), "
        "any Maven 3.6 or later, and the compatibility package of libcrypt.so.1 (libxcrypt-compat)."
    )
