"""The nodes that decide: versions of the plan, their barriers, and reports of generations.

SHELL. Each write is one transaction, which is done whole or not at all. It requires that the nodes
which its writer has read are unchanged.
"""

import contextlib
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import NodeExistsError, NoNodeError, NotEmptyError

from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Plan
from homeport.job_coordinator.standalone.protocol import BarrierPhase, CloseBarrier, Join, Publish
from homeport.job_coordinator.zookeeper.job_nodes import check_no_value, is_done, put_value

_FORGOTTEN = 1000
"""Reports to delete with one version: a transaction has a limit, and the next one goes on."""


class VersionNodes:
    """The deciding nodes below ``root`` of a job, in the session of ``client``."""

    def __init__(self, client: Any, root: str) -> None:  # noqa: ANN401 - kazoo has no types
        self._client = client
        self._root = root

    def newest(self, watch: Callable[..., None] | None = None) -> tuple[int, int]:
        """Return the newest version, and how often the node with its number has been written."""
        data, stat = self._client.get(self._path(nodes.JOB_MODELS), watch=watch)
        return nodes.decode_number(nodes.JOB_MODELS, data), stat.version

    def read(self, version: int) -> Plan:
        """Return the plan of a version.

        NoNodeError: the version is deleted.
        WireError: a node has a value that Homeport does not write.
        """
        path = self._path(nodes.JOB_MODELS, str(version))
        value, _ = self._client.get(path)
        names = nodes.segment_names(version, value)
        segments = [self._client.get(f"{path}/{name}")[0] for name in names]
        return nodes.decode_plan(version, value, segments)

    def put(self, transaction: Any, plan: Plan, writer: int, written: int) -> None:  # noqa: ANN401 - of kazoo
        """Make the plan the newest version by the transaction, which needs a barrier too.

        Segments of a plan that one node cannot hold are written at once.

        ``transaction``: one of kazoo. ``written``: how often the node with the newest version's
        number has been written.
        """
        stored = nodes.encode_plan(plan, writer)
        path = self._path(nodes.JOB_MODELS, str(plan.version))
        if stored.segments:
            self._client.ensure_path(path)
        for index, segment in enumerate(stored.segments):
            name = f"{path}/{nodes.segment_name(writer, index)}"
            try:
                self._client.create(name, segment)
            except NodeExistsError:
                self._client.set(name, segment)
        number = nodes.encode_number(plan.version)
        transaction.set_data(self._path(nodes.JOB_MODELS), number, version=written)
        put_value(self._client, transaction, path, stored.value)  # it exists if it has segments

    def publish(self, record: Publish) -> bool:
        """Make the plan the newest version; return False if that is refused.

        Delete the nodes that only former versions needed.
        """
        plan, client = record.plan, self._client
        newest, written = self.newest()
        if newest != plan.version - 1:
            return False
        transaction = client.transaction()
        transaction.check(self._path(nodes.PROCESSORS, nodes.node_name(record.leader)), 0)
        for incarnation in record.unreported:
            report, generation = self._report(incarnation)
            if not check_no_value(client, transaction, report, generation):
                return False
        self.put(transaction, plan, record.leader, written)
        barrier = self._path(nodes.BARRIERS, str(plan.version))
        transaction.create(barrier, BarrierPhase.NEW.value.encode())
        if not is_done(transaction):
            return False
        self._delete_old(plan.version)
        self._forget_reports(plan, written + 1)
        return True

    def join(self, record: Join) -> None:
        """Join the barrier while the processor's own node exists.

        So a late join does not take the successor's place.
        """
        path = self._path(nodes.BARRIERS, str(record.version), nodes.escaped(record.processor_id))
        transaction = self._client.transaction()
        transaction.check(self._path(nodes.PROCESSORS, nodes.node_name(record.sequence)), 0)
        put_value(self._client, transaction, path, nodes.encode_number(record.sequence))
        is_done(transaction)

    def close_barrier(self, record: CloseBarrier) -> None:
        """Give the barrier its phase, while it is NEW and its version the newest."""
        newest, written = self.newest()
        path = self._path(nodes.BARRIERS, str(record.version))
        data, stat = self._client.get(path)
        is_open = nodes.decode_barrier(record.version, data) is BarrierPhase.NEW
        if newest != record.version or not is_open:
            return
        transaction = self._client.transaction()
        transaction.check(self._path(nodes.JOB_MODELS), written)
        transaction.set_data(path, record.phase.value.encode(), version=stat.version)
        is_done(transaction)

    def confirm(self, incarnation: Incarnation, plan_of: Callable[[int], Plan | None]) -> bool:
        """Report that the incarnation has fenced its list; return whether it may go on.

        It may while the newest version has its generation, which the report requires.

        ``incarnation`` has fenced its list, and begun its own id. ``plan_of`` returns the plan of a
        version; None if that is deleted.
        """
        path, value = self._report(incarnation)
        while True:
            newest, written = self.newest()
            plan = plan_of(newest) if newest else None
            members = () if plan is None else plan.members
            if newest and plan is None:
                continue  # newer versions have replaced it meanwhile
            if incarnation not in {member.incarnation for member in members}:
                return False
            transaction = self._client.transaction()
            transaction.check(self._path(nodes.JOB_MODELS), written)
            put_value(self._client, transaction, path, value)
            if is_done(transaction):
                return True

    def _report(self, incarnation: Incarnation) -> tuple[str, bytes]:
        """Return the node with the processor's last report, and the value of this report."""
        name = nodes.escaped(incarnation.processor_id)
        return self._path(nodes.FENCED, name), nodes.encode_number(incarnation.epoch)

    def _delete_old(self, newest: int) -> None:
        for folder in (nodes.JOB_MODELS, nodes.BARRIERS):
            names = self._client.get_children(self._path(folder))
            for version in nodes.versions_to_delete(names, newest):
                with contextlib.suppress(NoNodeError, NotEmptyError):
                    self._client.delete(self._path(folder, str(version)), recursive=True)

    def _forget_reports(self, plan: Plan, written: int) -> None:
        """Delete the reports of processors that are no members, while the version is the newest.

        The next version needs only reports of members. A processor that is a member again is one in
        a later version, which voids this transaction.
        """
        path = self._path(nodes.FENCED)
        members = {nodes.escaped(member.processor_id) for member in plan.members}
        gone = sorted(set(self._client.get_children(path)) - members)
        if not gone:
            return
        transaction = self._client.transaction()
        transaction.check(self._path(nodes.JOB_MODELS), written)
        for name in gone[:_FORGOTTEN]:
            transaction.delete(f"{path}/{name}")
        is_done(transaction)

    def _path(self, *names: str) -> str:
        return "/".join((self._root, *names))
