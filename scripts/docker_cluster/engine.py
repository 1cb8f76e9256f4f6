"""The Docker engine: the user's own, else one that root starts for the time of a cluster.

Looked for in this order: DOCKER_HOST, the context of the docker command, then our own socket. An
engine of ours has its data, its state and its socket in the cache, so that images stay, and is
stopped with the last cluster.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docker_cluster import packet_rules
from homeport.local_cluster.jars import Progress


class DockerError(Exception):
    """The engine, the image or the cluster is not as it must be."""


_START_LIMIT_S = 60.0
_STOP_LIMIT_S = 30.0
_PULL_LIMIT_S = 300.0
_USERS = "engine.users"
_OLDEST = 20
_COMPOSE = (("docker", "compose"), ("docker-compose",))
_started: list[subprocess.Popen[bytes]] = []
"""The engine outlives the command that started it; a process object must not go before it."""


@dataclass(frozen=True)
class Engine:
    """A running engine; ``host``: its address, as DOCKER_HOST has it; "": the command's default."""

    host: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a program that uses it."""
        return {**os.environ, **({"DOCKER_HOST": self.host} if self.host else {})}

    def run(self, *arguments: str, limit_s: float = 600.0) -> str:
        """Return what ``docker`` prints.

        DockerError: it fails; the message has its last line.
        """
        done = self.call(*arguments, limit_s=limit_s)
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
            raise DockerError(f"docker {arguments[0]}: {lines[-1]}")
        return done.stdout

    def call(self, *arguments: str, limit_s: float = 600.0) -> subprocess.CompletedProcess[str]:
        """Return ``docker`` as it ends."""
        return subprocess.run(
            ["docker", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )

    def has(self, image: str) -> bool:
        """Return whether the image is here."""
        return self.call("image", "inspect", image).returncode == 0

    def pull(self, image: str, progress: Progress) -> bool:
        """Return whether a registry gives the image."""
        progress(f"pulling {image}")
        try:
            return self.call("pull", image, limit_s=_PULL_LIMIT_S).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def compose(self) -> tuple[str, ...]:
        """Return the command of compose, version 1 or 2; DockerError where there is none."""
        for command in _COMPOSE:
            with contextlib.suppress(OSError):
                version = [*command, "version"]
                done = subprocess.run(
                    version, env=self.environment, capture_output=True, timeout=60, check=False
                )
                if done.returncode == 0:
                    return command
        raise DockerError(
            "the Docker engine has no compose: install it (Debian: apt-get install docker-compose)"
        )


def folder(cache: Path) -> Path:
    """Return where images, the engine's state and what is built for it are kept."""
    return cache / "docker"


def find(cache: Path) -> Engine | None:
    """Return an engine that answers.

    DockerError: there is one that this user may not use, or it is too old.
    """
    if shutil.which("docker") is None:
        return None
    socket = _socket(cache)
    for host in ("", f"unix://{socket}"):
        if host and not socket.exists():
            continue
        done = Engine(host).call("version", "-f", "{{.Server.Version}}", limit_s=60)
        if done.returncode == 0:
            _require_version(done.stdout.strip())
            return Engine(host)
        if "permission denied" in done.stderr:
            raise DockerError(
                "a Docker engine runs and this user may not use it: join the group docker "
                "(usermod -aG docker USER), or run this as root"
            )
    return None


def _require_version(version: str) -> None:
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < _OLDEST:
        raise DockerError(f"the Docker engine is {version}: install {_OLDEST}.10 or later")


def ensure(cache: Path, progress: Progress) -> Engine:
    """Return an engine that answers; root starts one where there is none.

    DockerError: there is none and none can be started from here.
    """
    found = find(cache)
    if found is not None:
        return found
    if os.geteuid() != 0:
        raise DockerError(
            "no Docker engine answers: start one (systemctl start docker), let DOCKER_HOST name "
            "one, or run this as root, which starts one for the time of the cluster"
        )
    if shutil.which("dockerd") is None:
        raise DockerError(
            "no Docker engine answers and none is installed: install one (Debian: apt-get install "
            "docker.io docker-compose)"
        )
    with _exclusive(cache):
        return find(cache) or _start(cache, progress)


def _start(cache: Path, progress: Progress) -> Engine:
    own, socket = folder(cache) / "engine", _socket(cache)
    own.mkdir(parents=True, exist_ok=True)
    # One that no longer answers would remove the files of its successor when it ends.
    _end(own, progress)
    progress("starting a Docker engine of our own")
    pid_file, log = own / "dockerd.pid", own / "dockerd.log"
    pid_file.unlink(missing_ok=True)
    packet_rules.clear_dead()
    if not (own / "network.json").exists():
        packet_rules.note(own / "network.json")
    command = ["dockerd", "--data-root", str(own / "data"), "--exec-root", str(own / "exec")]
    command += ["--pidfile", str(pid_file), "-H", f"unix://{socket}"]
    command += ["--bip", packet_rules.OWN_BRIDGE]
    command += ["--storage-driver", "overlay2", "--log-level", "warn"]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
        )
    _started.append(process)
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        found = find(cache)
        if found is not None:
            return found
        time.sleep(0.1)
    process.terminate()
    raise DockerError(f"the Docker engine does not start ({last_line(log)}): see {log}")


def last_line(log: Path) -> str:
    """Return the last line of a program's log."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"


def stop_own(cache: Path, progress: Progress) -> None:
    """End an engine of ours without any container, and what it left of its network.

    One that is ``in_use`` stays; its last user stops it.
    """
    socket, own = _socket(cache), folder(cache) / "engine"
    if not socket.exists() and not _daemons(own):
        return
    with _exclusive(cache), (folder(cache) / _USERS).open("w") as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        engine = Engine(f"unix://{socket}")
        listed = engine.call("ps", "-aq", limit_s=60)
        if listed.returncode == 0 and listed.stdout.strip():
            progress("our Docker engine stays: it has containers")
            return
        progress("stopping our Docker engine")
        _end(own, progress)
        socket.unlink(missing_ok=True)
        packet_rules.restore(own / "network.json")


@contextlib.contextmanager
def in_use(cache: Path) -> Iterator[None]:
    """Keep other clones from stopping an engine of ours that has no container yet."""
    folder(cache).mkdir(parents=True, exist_ok=True)
    with (folder(cache) / _USERS).open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        yield


def _end(own: Path, progress: Progress, limit_s: float = _STOP_LIMIT_S) -> None:
    """No engine of the folder ``own`` runs. One that does not end in time is killed."""
    mine = [process for process in _started if process.pid in _daemons(own)]
    deadline, asked, is_late = time.monotonic() + limit_s, set[int](), False
    while pids := _daemons(own):
        if not is_late and time.monotonic() > deadline:
            is_late = True
            progress(f"our Docker engine did not end within {limit_s:g} s: killing it")
        for pid in pids if is_late else set(pids) - asked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
        asked.update(pids)
        time.sleep(0.05)  # /proc announces no end
    for process in mine:
        process.wait()
        _started.remove(process)


def _daemons(own: Path) -> list[int]:
    """Dockerd of the folder ``own``, or its containerd where dockerd has gone without it.

    By their arguments: a pid file may be that of another engine, or missing.
    """
    found: dict[str, list[int]] = {"dockerd": [], "containerd": []}
    for folder_of_one in Path("/proc").glob("[0-9]*"):
        try:
            raw = (folder_of_one / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        program, *arguments = os.fsdecode(raw).split("\0")
        pids = found.get(Path(program).name)
        if pids is not None and any(x.startswith(f"{own}/") for x in arguments):
            pids.append(int(folder_of_one.name))
    return found["dockerd"] or found["containerd"]


def _socket(cache: Path) -> Path:
    return folder(cache) / "engine" / "docker.sock"


@contextlib.contextmanager
def _exclusive(cache: Path) -> Iterator[None]:
    folder(cache).mkdir(parents=True, exist_ok=True)
    with (folder(cache) / "engine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
