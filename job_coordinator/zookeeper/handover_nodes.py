"""The nodes of a standalone job that does not run, as tools read and write them.

SHELL. Each write is done whole or not at all. ``publish`` fails if another program was faster.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from homeport.config.config import Config
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import NO_SESSION, Plan
from homeport.job_coordinator.standalone.protocol import BarrierPhase
from homeport.job_coordinator.zookeeper.job_nodes import (
    is_done,
    make_nodes,
    put_value,
    values_below,
)
from homeport.job_coordinator.zookeeper.tool_session import job_root, registrations, tool_session
from homeport.job_coordinator.zookeeper.version_nodes import VersionNodes


@dataclass(frozen=True, slots=True)
class Kept:
    """The values of the nodes.

    ``version``: the newest one, 0 before the first. ``written``: how often the node with its number
    has been written. ``plan``: the plan of that version. ``processors``: those registered now.
    Shapes: ``hosts`` {task: location}; ``fenced`` {processor: the generation in which it last
    reported that it fenced its list}.
    """

    version: int
    written: int
    plan: Plan | None
    hosts: Mapping[TaskName, Host]
    fenced: Mapping[ProcessorId, int]
    processors: tuple[ProcessorId, ...]


class HandoverNodes:
    """The nodes of one job, in one session."""

    def __init__(
        self, client: KazooClient, settings: StandaloneConfig, root: str, *, read_only: bool
    ) -> None:
        self._client: Any = client
        self._read_only = read_only
        self._settings = settings
        self._root = root
        self._versions = VersionNodes(client, root)

    def read(self) -> Kept:
        """Return the present values; a server that is behind the others catches up first.

        WireError: a node has a value that Homeport does not write.
        """
        self._catch_up()
        try:
            data, stat = self._client.get(self._path(nodes.JOB_MODELS))
        except NoNodeError:
            return Kept(0, -1, None, {}, {}, self._processors())
        version = nodes.decode_number(nodes.JOB_MODELS, data)
        plan = self._versions.read(version) if version else None
        fenced = values_below(self._client, self._path(nodes.FENCED))
        return Kept(
            version,
            stat.version,
            plan,
            self.hosts(),
            {
                ProcessorId(name): nodes.decode_number(f"{nodes.FENCED}/{name}", data)
                for name, data in fenced.items()
            },
            self._processors(),
        )

    def hosts(self) -> dict[TaskName, Host]:
        """Return {task: its last location}, as ``read`` does."""
        self._catch_up()
        try:
            found = values_below(self._client, self._path(nodes.LOCALITY))
        except NoNodeError:
            return {}
        return {TaskName(t): nodes.decode_location(TaskName(t), d) for t, d in found.items()}

    def publish(self, kept: Kept, plan: Plan) -> bool:
        """Publish the plan, its barrier DONE; return False if the nodes have changed since."""
        client = self._client
        if kept.written < 0:
            make_nodes(client, self._root, is_owned=self._settings.access.is_owned)
        transaction = client.transaction()
        self._versions.put(transaction, plan, NO_SESSION, max(kept.written, 0))
        barrier = self._path(nodes.BARRIERS, str(plan.version))
        put_value(client, transaction, barrier, BarrierPhase.DONE.value.encode())
        return is_done(transaction)

    def write_hosts(self, hosts: Mapping[TaskName, Host]) -> None:
        """Write the last locations of these tasks; those of other tasks stay."""
        make_nodes(self._client, self._root, is_owned=self._settings.access.is_owned)
        for task, host in sorted(hosts.items()):
            path = self._path(nodes.LOCALITY, nodes.escaped(task))
            try:
                self._client.create(path, host.encode())
            except NodeExistsError:
                self._client.set(path, host.encode())

    def exists(self) -> bool:
        """Return whether the job has a tree."""
        self._catch_up()
        return self._client.exists(self._root) is not None

    def delete(self) -> bool:
        """Delete the job's whole tree; return False where there is none.

        A deletion that is cut off leaves a tree that ``read`` reads as one without versions.
        """
        models = self._path(nodes.JOB_MODELS)
        if self._client.exists(models) is not None:
            self._client.set(models, nodes.encode_number(0))
            self._client.delete(models, recursive=True)
        if not self.exists():
            return False
        self._client.delete(self._root, recursive=True)
        return True

    @property
    def root(self) -> str:
        """Return the path of the job's tree."""
        return self._root

    def _catch_up(self) -> None:
        if not self._read_only:  # a read-only server may refuse it
            self._client.sync(self._root)

    def _path(self, *names: str) -> str:
        return "/".join((self._root, *names))

    def _processors(self) -> tuple[ProcessorId, ...]:
        found = registrations(self._client, self._root)
        return tuple(registration.processor_id for registration in found)


@contextlib.contextmanager
def handover_nodes(
    config: Config, timeout_s: float, *, read_only: bool = False
) -> Iterator[HandoverNodes]:
    """Yield the nodes of the job, for a block.

    ``read_only``: whether a server without a quorum will do, since the block only shows the nodes.

    ConfigError: the configuration does not name ZooKeeper, or its credentials.
    RefusedError: ZooKeeper refuses the user, or gives it no right.
    UnavailableError: ZooKeeper does not answer.
    """
    settings = StandaloneConfig.of(config)
    root = job_root(config, settings)
    with tool_session(settings, root, timeout_s, read_only=read_only) as client:
        yield HandoverNodes(client, settings, root, read_only=read_only)
