"""The image: its base, its context, and its name, which is that of its content.

Jars come from Maven, settings from ``settings``; nothing but Debian's packages is fetched while it
is built. homeport is not in it: after a change of the code it stays as it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from docker_cluster import settings
from docker_cluster.engine import DockerError, Engine, folder, last_line
from homeport.appmaster.environment.class_data import PROGRAM, HostJava
from homeport.local_cluster.jars import Progress, ensure_jars

ROOT = Path(__file__).resolve().parents[2]
BASE = "debian:bookworm-slim"
NAME = "homeport-cluster"
ROLES = ("hadoop", "hdfs", "kafka", "zookeeper")
_MAKE_LIMIT_S = 1200.0


def ensure(engine: Engine, cache: Path, progress: Progress) -> str:
    """Return the name of the image that fits this clone; it is built now if it is not there.

    DockerError: it cannot be built; the message names the log.
    ClusterError: Maven cannot fetch the jars.
    """
    jars = {role: ensure_jars(cache, role, progress) for role in ROLES}
    context = folder(cache) / "context"
    context.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="homeport-", dir=context) as name:
        target = Path(name)
        _fill(target, jars)
        image = f"{NAME}:{_digest(target)}"
        build(engine, cache, image, target, progress)
    return image


def build(engine: Engine, cache: Path, image: str, context: Path, progress: Progress) -> None:
    """Make the image of that name from ``context``, unless it is there.

    DockerError: it cannot be built; the message names the log.
    """
    if engine.has(image):
        return
    with (folder(cache) / "image.lock").open("w") as lock:  # one base for all clones
        fcntl.flock(lock, fcntl.LOCK_EX)
        _ensure_base(engine, cache, progress)
    progress(f"building the image {image}")
    log = folder(cache) / "build.log"
    command = ["docker", "build", "--build-arg", f"BASE={BASE}", "-t", image, str(context)]
    if not _ends_well(command, log, engine.environment | {"DOCKER_BUILDKIT": "0"}):
        raise DockerError(f"the image cannot be built ({last_line(log)}): see {log}")


def _ends_well(command: list[str], log: Path, environment: dict[str, str] | None = None) -> bool:
    with log.open("wb") as sink:
        return not subprocess.run(
            command, env=environment, stdout=sink, stderr=sink, timeout=_MAKE_LIMIT_S, check=False
        ).returncode


def host_java(engine: Engine, image: str) -> HostJava:
    """Return the Java of the image, which makes Spark's class-data archive for its hosts."""
    plain = ["run", "--rm", "--network", "none", "--entrypoint"]
    release = engine.run(*plain, "cat", image, "/opt/java/release")
    packages = sysconfig.get_path("purelib")

    def command(folder: Path) -> list[str]:
        mounts = ["-v", f"{packages}:/packages:ro", "-v", f"{folder}:/made"]
        # Without a network, it can find no other name.
        options = ["--hostname", "localhost", "-e", "PYTHONPATH=/packages"]
        options += ["-e", "PYTHONDONTWRITEBYTECODE=1", *mounts]
        docker = ["docker", *(["-H", engine.host] if engine.host else [])]
        return [*docker, *plain, "python3", *options, image, "-m", PROGRAM, "/made"]

    return HostJava(release, command)


def _fill(target: Path, jars: dict[str, Path]) -> None:
    shutil.copy2(ROOT / "docker" / "Dockerfile", target)
    shutil.copytree(ROOT / "docker" / "image", target / "image")
    settings.write(target / "conf")
    known: set[str] = set()
    for role in ROLES:
        (target / "jars" / role).mkdir(parents=True)
        for jar in sorted(jars[role].glob("*.jar")):
            # hdfs and hadoop come together to one class path: one of each is enough.
            if role == "hdfs" and jar.name in known:
                continue
            known.add(jar.name)
            _link(jar, target / "jars" / role / jar.name)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def digest(content: bytes) -> str:
    """Return the tag of an image that is made of ``content`` on the base."""
    return hashlib.sha256(BASE.encode() + content).hexdigest()[:12]


def _digest(context: Path) -> str:
    """Of names, modes and contents; of jars the names, as each has its version in it."""
    digest = hashlib.sha256(BASE.encode())
    for path in sorted(p for p in context.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(context)} {path.stat().st_mode:o}\n".encode())
        if path.suffix != ".jar":
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _ensure_base(engine: Engine, cache: Path, progress: Progress) -> None:
    """The public base image; where no registry answers, the same made of Debian's packages."""
    if engine.has(BASE):
        return
    kept = folder(cache) / "base.tar"
    if not kept.exists():
        if engine.pull(BASE, progress):
            return
        progress(f"no registry answers: making {BASE} of Debian's packages (a minute, once)")
        _make_base(kept, folder(cache) / "base.log")
    engine.run("import", "--change", 'CMD ["bash"]', str(kept), BASE)


def _make_base(target: Path, log: Path) -> None:
    if os.geteuid() != 0:
        raise DockerError(
            f"{BASE} is neither here nor can it be pulled, and only root can make it: pull it "
            f"(docker pull {BASE}), or run this as root"
        )
    if shutil.which("debootstrap") is None:
        raise DockerError(
            f"{BASE} is neither here nor can it be pulled, and debootstrap, which makes it, is "
            "not installed: apt-get install debootstrap"
        )
    script = Path(__file__).with_name("make_base.sh")
    partial = target.with_suffix(".partial")
    if not _ends_well(["bash", str(script), str(partial)], log):
        raise DockerError(f"{BASE} cannot be made of Debian's packages: see {log}")
    partial.replace(target)
