"""The cluster in containers as one object: up, down, status, and what clients need to use it.

Its name is that of its clone, so that two clones do not meet. What it was started with stands in
``build/docker/cluster.json``.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from docker_cluster import credentials, image, names, observability, permissions, settings
from docker_cluster import engine as engines
from docker_cluster.engine import DockerError, Engine
from docker_cluster.faults import DockerFaults
from docker_cluster.free_addresses import free_net, free_ports
from homeport.appmaster.environment.pack import Packed, pack
from homeport.local_cluster.hadoop_conf import LABEL, LABELS, SCHEDULERS, labelled_nodes
from homeport.local_cluster.jars import Progress
from homeport.local_cluster.resource_manager import label_nodes, node_states
from local_setup.environment import cache_dir

ROOT = image.ROOT
NODES = ("nm1", "nm2", "nm3")
KDC = "kdc"
_NUMBERS = {
    "rm": 10,
    "nm1": 11,
    "nm2": 12,
    "nm3": 13,
    "nn": 20,
    "dn": 21,
    "kafka": 30,
    "zk": 31,
    "client": 40,
    KDC: 41,
    observability.TARGETS: 50,
    observability.PROMETHEUS: 51,
    observability.GRAFANA: 52,
}
"""The last number of the address of each service, as in docker/compose.yaml."""
SERVICES = tuple(s for s in _NUMBERS if s not in {KDC, *observability.SERVICES})
EXTRAS = frozenset({"avro", "demo"})
_COMPOSE = ROOT / "docker" / "compose.yaml"
_SECURE = ROOT / "docker" / "secure.yaml"
_FOLDER = ROOT / "build" / "docker"
_DEMO_FOLDER = ROOT / "build" / "docker-demo"
_NEEDED_MB = 6000
_UP_LIMIT_S = 180.0
_IS_ERROR = re.compile(r"^Caused by: | (ERROR|FATAL) ")


@dataclass(frozen=True)
class Started:
    """What a cluster was started with; ``net``: the first three numbers of its addresses."""

    name: str
    engine: str
    image: str
    net: str
    ports: Mapping[str, int]
    kafka_cluster_id: str
    archive: str
    scheduler: str
    secure: bool = False


class DockerCluster:
    """ResourceManager, NodeManagers nm1 to nm3, HDFS, Kafka, ZooKeeper and a client, in containers.

    It holds no state but its record, so several processes may use one cluster.
    """

    nodes = NODES

    def __init__(self, folder: Path = _FOLDER, cache: Path | None = None) -> None:
        self._folder = folder
        self._cache = cache or cache_dir()
        self.name = "homeport-" + hashlib.sha256(str(folder).encode()).hexdigest()[:8]

    @classmethod
    def of_demo(cls) -> DockerCluster:
        """Return the clone's other cluster, of ``docker/demo``."""
        return cls(_DEMO_FOLDER)

    @contextlib.contextmanager
    def owned(self) -> Iterator[bool]:
        """Yield whether no other process owns it, as a demo does; this one owns it then."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / ".owner").open("w") as owner:
            try:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    # ------------------------------------------------------------------ up and down

    def up(
        self,
        progress: Progress,
        scheduler: str | None = None,
        *,
        secure: bool = False,
        observed: bool = False,
    ) -> None:
        """Bring it up: daemons serve, nodes take work, the client has the clone's homeport.

        One that is up with the same image stays up, with its data; the environment is renewed where
        the code has changed. ``scheduler``: of YARN, a name in ``SCHEDULERS``; None: as it is, and
        of a new cluster the fair one. ``secure``: with Kerberos, TLS, SASL and rights of access; a
        cluster that is up without them starts again, without its data, and the reverse.
        ``observed``: Prometheus and, where its image can be had, Grafana are there too.

        DockerError: something is missing or does not start; the line names it and the remedy.
        """
        with self._exclusive(progress), engines.in_use(self._cache):
            running = engines.ensure(self._cache, progress)
            running.compose()
            wanted = image.ensure(running, self._cache, progress)
            java = image.host_java(running, wanted)
            packed = pack(self._cache, None, EXTRAS, progress, java)
            extra = observability.ensure(running, self._cache, progress) if observed else ()
            before = self._started()
            if before is not None and (before.image, before.secure) != (wanted, secure):
                what = "image has" if before.image != wanted else "locks have"
                progress(f"the {what} changed: the cluster starts again, without its data")
                self._remove(before)
                before = None
            started = self._record(before, running, wanted, packed.archive, scheduler)
            if before is None:
                started = replace(started, secure=secure)
                self._remove_remains(started, progress)
                self._make_secrets(started)
            self._write(started)
            (self._folder / "work").mkdir(parents=True, exist_ok=True)
            self._trees.mkdir(parents=True, exist_ok=True)
            place_tree(self._trees, packed)
            services = (*_services(started), *extra)
            progress(f"starting {', '.join(services)} on {started.net}.0/24")
            self._write_variables(started)
            self._compose(started, "up", "--detach", "--remove-orphans", *services)
            containers = {s: f"{started.name}-{s}" for s in _services(started)}
            names.require(running, containers, self.addresses)
            tree = f"/homeport/trees/{packed.identity}"
            running.run("exec", containers["client"], "/opt/cluster/environment", tree)
            self._await(started, running, services, progress)
            if started.secure:
                permissions.grant(f"localhost:{started.ports['KAFKA_PORT']}", self._secrets)
                progress("Kafka has its users and their rights")
            if started.scheduler == LABELS:
                self._label(started, progress)
            progress("the client has homeport's commands")

    def down(self, progress: Progress) -> None:
        """Remove all of it: containers, networks, volumes, and an engine that ours alone used.

        Images and what was fetched for them stay, for the next start.
        """
        with self._exclusive(progress):
            started = self._started()
            if started is not None:
                if engines.find(self._cache) is not None:
                    progress(f"removing {started.name}")
                    self._remove(started)
                for path in (self._file, self._variables_file):
                    path.unlink(missing_ok=True)
            for folder in (self._folder / "work", self._secrets, self._trees):
                shutil.rmtree(folder, ignore_errors=True)
            engines.stop_own(self._cache, progress)

    @property
    def is_left(self) -> bool:
        """Whether it has not been down since its start; its command may have been killed."""
        return self._file.exists()

    def status(self) -> dict[str, Any]:
        """Return name, addresses on loopback and each container's state; empty where it is down."""
        started = self._started()
        if started is None:
            return {}
        listed = self.engine.run(
            "ps", "-a", "--filter", f"name={started.name}-", "--format", "{{.Names}}\t{{.Status}}"
        )
        states = dict(line.split("\t", 1) for line in listed.splitlines())
        extra = [s for s in observability.SERVICES if f"{started.name}-{s}" in states]
        shown = observability.addresses(started.ports)
        return {
            "name": started.name,
            "image": started.image,
            "addresses": {
                "ResourceManager": f"http://127.0.0.1:{started.ports['RM_PORT']}",
                "Kafka": f"localhost:{started.ports['KAFKA_PORT']}",
                "ZooKeeper": f"localhost:{started.ports['ZK_PORT']}",
                **{s.capitalize(): shown[s] for s in extra if s in shown},
            },
            "containers": {
                s: states.get(f"{started.name}-{s}", "not there")
                for s in (*_services(started), *extra)
            },
        }

    # ------------------------------------------------------------------ what is

    @property
    def engine(self) -> Engine:
        """The engine that runs it."""
        return Engine(self._up().engine)

    @property
    def archive(self) -> Path:
        """The environment that the client has and that jobs take with them."""
        return Path(self._up().archive)

    def container(self, service: str) -> str:
        """Return the name of the container of a service."""
        return f"{self._up().name}-{service}"

    def client_command(self, *arguments: str, interactive: bool = False) -> list[str]:
        """Return the command that runs another one in the client's container."""
        options = ["--interactive"] if interactive else []
        return ["docker", "exec", *options, self.container("client"), *arguments]

    @property
    def addresses(self) -> dict[str, str]:
        """{service: its address in the cluster's network}."""
        net = self._up().net
        return {service: f"{net}.{number}" for service, number in _NUMBERS.items()}

    @property
    def faults(self) -> DockerFaults:
        """What may befall its containers."""
        return DockerFaults(self.engine, {s: self.container(s) for s in SERVICES})

    def _up(self) -> Started:
        started = self._started()
        if started is None:
            raise DockerError("the cluster in containers is down: start it by docker/up")
        return started

    # ------------------------------------------------------------------ inside

    @property
    def _file(self) -> Path:
        return self._folder / "cluster.json"

    @property
    def _variables_file(self) -> Path:
        return self._folder / "compose.env"

    @property
    def _secrets(self) -> Path:
        return self._folder / "secrets"

    @property
    def _trees(self) -> Path:
        return engines.folder(self._cache) / "clients" / self.name

    def _make_secrets(self, started: Started) -> None:
        shutil.rmtree(self._secrets, ignore_errors=True)
        if started.secure:
            addresses = {service: f"{started.net}.{n}" for service, n in _NUMBERS.items()}
            credentials.make(self._secrets, addresses, SERVICES)

    def _started(self) -> Started | None:
        try:
            return Started(**json.loads(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise DockerError(
                f"{self._file} is not the record of a cluster ({error}): remove it, and the "
                f"containers whose names begin with {self.name}"
            ) from None

    def _write(self, started: Started) -> None:
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(started), indent=1), encoding="utf-8")
        partial.replace(self._file)

    def _record(
        self,
        before: Started | None,
        running: Engine,
        wanted: str,
        archive: Path,
        scheduler: str | None,
    ) -> Started:
        """As it was started before, with this engine and archive; else with what is free."""
        if before is None:
            _require_memory()
            ids = base64.urlsafe_b64encode(b"\0" + secrets.token_bytes(15)).decode().rstrip("=")
            return Started(
                name=self.name,
                engine=running.host,
                image=wanted,
                net=free_net(running),
                ports=free_ports(os.environ),
                kafka_cluster_id=ids,
                archive=str(archive),
                scheduler=scheduler or "fair",
            )
        return replace(
            before,
            engine=running.host,
            archive=str(archive),
            scheduler=scheduler or before.scheduler,
        )

    def _remove_remains(self, started: Started, progress: Progress) -> None:
        """Volumes of an earlier cluster are gone, whose record was lost: they may fit no more."""
        own = f"label=com.docker.compose.project={started.name}"
        if Engine(started.engine).run("volume", "ls", "-q", "--filter", own).strip():
            progress("an earlier cluster has lost its record: it is removed, with its data")
            self._remove(started)

    def _remove(self, started: Started) -> None:
        with contextlib.suppress(DockerError):  # nothing runs
            self._compose(started, "kill", is_all=True)
        self._compose(started, "down", "--volumes", "--remove-orphans", is_all=True)

    def _files(self, started: Started) -> list[Path]:
        return [_COMPOSE, *([_SECURE] if started.secure else [])]

    def _variables(self, started: Started) -> dict[str, str]:
        return {
            "NAME": started.name,
            "IMAGE": started.image,
            "NET": started.net,
            "KAFKA_CLUSTER_ID": started.kafka_cluster_id,
            "SCHEDULER": SCHEDULERS[started.scheduler],
            "NODE_LABELS": str(started.scheduler == LABELS).lower(),
            "QUEUES": settings.LABELLED if started.scheduler == LABELS else "",
            "CLONE": str(ROOT),
            "ENVIRONMENTS": str(Path(started.archive).parent),
            "TREES": str(self._trees),
            "WORK": str(self._folder / "work"),
            "SECRETS": str(self._secrets),
            "PROMETHEUS_IMAGE": observability.prometheus_image(),
            "GRAFANA_IMAGE": observability.GRAFANA_IMAGE,
            **{name: str(port) for name, port in started.ports.items()},
        }

    def _write_variables(self, started: Started) -> None:
        """For a user's own call of compose: ``docker compose --env-file FILE``."""
        variables = {
            "COMPOSE_PROJECT_NAME": started.name,
            "COMPOSE_FILE": ":".join(map(str, self._files(started))),
            **self._variables(started),
        }
        text = "".join(f"{name}={value}\n" for name, value in variables.items())
        self._variables_file.write_text(text, encoding="utf-8")

    def _compose(self, started: Started, *arguments: str, is_all: bool = False) -> None:
        """``is_all``: also what only a profile starts."""
        running = Engine(started.engine)
        variables = self._variables(started)
        log = self._folder / "compose.log"
        command = [*running.compose(), "-p", started.name]
        command += [word for path in self._files(started) for word in ("-f", str(path))]
        command += [*(["--profile", observability.PROFILE] if is_all else []), *arguments]
        with log.open("ab") as sink:
            done = subprocess.run(
                command,
                env=running.environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                check=False,
            )
        if done.returncode != 0:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            said = next((x for x in reversed(lines) if "rror" in x), lines[-1] if lines else "")
            raise DockerError(f"compose {arguments[0]}: {said}: see {log}")

    def _await(
        self, started: Started, running: Engine, services: tuple[str, ...], progress: Progress
    ) -> None:
        began = time.monotonic()
        waiting = [s for s in services if s not in NODES and s != "client"]
        url, said = f"http://127.0.0.1:{started.ports['RM_PORT']}", ""
        while True:
            waiting = [s for s in waiting if not self._serves(started, running, s)]
            states = {} if "rm" in waiting else node_states(url) or {}
            missing = [n for n in NODES if states.get(n) != "RUNNING"]
            seconds = time.monotonic() - began
            if not waiting and not missing:
                progress(f"all daemons serve after {seconds:.0f} s")
                return
            late = ", ".join([*waiting, *missing])
            if seconds > _UP_LIMIT_S:
                raise DockerError(
                    f"after {seconds:.0f} s these do not serve: {late}"
                    + self._printed(started, running, late.split(", "))
                )
            if late != said:
                progress(f"waiting for {late}")
                said = late
            time.sleep(1.0)

    def _printed(self, started: Started, running: Engine, late: Sequence[str]) -> str:
        """The last error that they print; all they print is in files that outlive the cluster."""
        folder, errors = self._folder / "logs", []
        folder.mkdir(exist_ok=True)
        for service in late:
            done = running.call("logs", f"{started.name}-{service}")
            text = done.stdout + done.stderr
            (folder / f"{service}.log").write_text(text, encoding="utf-8")
            lines = text.splitlines()
            errors += [f"{service}: {x.strip()}" for x in lines if _IS_ERROR.search(x)][-1:]
        said = f"; the last error is of {errors[-1]}" if errors else ""
        return f"{said}; what they print is in {folder}"

    def _label(self, started: Started, progress: Progress) -> None:
        """All nodes but the last one have the label of the profile."""
        labelled = labelled_nodes(NODES)
        try:
            label_nodes(f"http://127.0.0.1:{started.ports['RM_PORT']}", LABEL, labelled)
        except OSError as error:
            raise DockerError(
                f"the ResourceManager labels no node ({error}): docker/logs rm shows more"
            ) from None
        progress(f"label {LABEL}: {', '.join(labelled)}")

    def _serves(self, started: Started, running: Engine, service: str) -> bool:
        if service in observability.addresses(started.ports):
            return observability.serves(service, started.ports)
        name = f"{started.name}-{service}"
        done = running.call("exec", name, "/opt/cluster/health", service, limit_s=30)
        if done.returncode != 0 and "is not running" in done.stderr:
            logs = running.call("logs", "--tail", "5", name)
            lines = (logs.stdout + logs.stderr).strip().splitlines() or ["it printed nothing"]
            raise DockerError(f"{service} has ended: {lines[-1]}: docker/logs {service} shows more")
        return done.returncode == 0

    @contextlib.contextmanager
    def _exclusive(self, progress: Progress) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress("waiting for another command on this cluster")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _services(started: Started) -> tuple[str, ...]:
    return (*SERVICES, KDC) if started.secure else SERVICES


def _require_memory() -> None:
    free = psutil.virtual_memory().available // 2**20
    if free < _NEEDED_MB:
        raise DockerError(
            f"{free} MB of memory are free, the cluster with a job needs {_NEEDED_MB} MB: end "
            "something else, or take a larger machine"
        )


def place_tree(folder: Path, packed: Packed) -> None:
    """Place the packed environment for the client, as hard links: it unpacks nothing.

    A cluster has links of its own, so that its client keeps its commands where the cache removes
    the tree. The tree is ``<folder>/<identity>``, whole; those of earlier environments are gone.
    ``folder`` is on the file system of the cache. A running client sees it as ``/homeport/trees``.
    """
    target = folder / packed.identity
    if not target.exists():
        partial = folder / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(packed.tree, partial, symlinks=True, copy_function=os.link)
        partial.replace(target)
    for other in folder.iterdir():
        if other != target:
            shutil.rmtree(other)
