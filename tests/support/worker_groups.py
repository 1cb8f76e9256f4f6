"""Which tests stay together on one worker of pytest-xdist, and which groups begin first."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

_DISTURBED_1, _DISTURBED_2 = "disturbed 1", "disturbed 2"
_GROUPS = {
    "disturbed/test_adjunct_failover.py": _DISTURBED_2,
    "disturbed/test_attempts.py": _DISTURBED_1,
    "disturbed/test_cluster_resource_manager.py": _DISTURBED_1,
    "disturbed/test_container_count.py": _DISTURBED_2,
    "disturbed/test_dashboard_pictures.py": _DISTURBED_1,
    "disturbed/test_failover_hosts.py": _DISTURBED_2,
    "disturbed/test_full_hosts.py": _DISTURBED_2,
    "disturbed/test_joining_hosts.py": _DISTURBED_1,
    "disturbed/test_local_cluster.py": _DISTURBED_2,
    "disturbed/test_mixed_roles.py": _DISTURBED_2,
    "disturbed/test_outages.py": _DISTURBED_1,
    "disturbed/test_repartition_failover.py": _DISTURBED_1,
    "disturbed/test_survival.py": _DISTURBED_2,
    "disturbed/test_users_chaos.py": _DISTURBED_1,
    "disturbed/test_yarn_job.py": _DISTURBED_1,
    "disturbed/test_yarn_standby.py": _DISTURBED_2,
    "disturbed/test_zombies.py": _DISTURBED_2,
    "test_failover_network.py": _DISTURBED_2,
    "test_faults.py": _DISTURBED_2,
    "test_network_failover.py": _DISTURBED_2,
}
"""Module of tests/integration -> its group, which has clusters of its own."""
_FIRST = (_DISTURBED_1, _DISTURBED_2, "tests/unit/world/test_rules.py")
"""What takes minutes on one worker: begun last, it would be waited for by all others."""
_ON_CLUSTERS = ("cluster", "integration", "long")
_FOLDERS = (*_ON_CLUSTERS, "exhaustive", "property")


def group_of(nodeid: str) -> str:
    """The group of a test; of most, its module."""
    module = nodeid.partition("::")[0]
    return _GROUPS.get(module.removeprefix("tests/integration/"), module)


def turn_of(nodeid: str) -> int:
    """Smaller begins earlier: what takes longest, then integration tests, then searches."""
    group = group_of(nodeid)
    if group in _FIRST:
        return _FIRST.index(group)
    folder = group.removeprefix("tests/").partition("/")[0]
    return len(_FIRST) + (_FOLDERS.index(folder) if folder in _FOLDERS else len(_FOLDERS))


def precedes_clusters(nodeid: str | None) -> bool:
    """Return whether this test or a later one may use a cluster; ``None``: there is no test.

    Groups are handed out in their order, so none does after the first search or unit test.
    """
    return nodeid is not None and turn_of(nodeid) < len(_FIRST) + len(_ON_CLUSTERS)


def ends_clusters(nodeid: str, following: str | None) -> bool:
    """Return whether the clusters of a worker are of no use between these two of its tests.

    They end with a group that has clusters of its own, and with the last test that may use one.
    """
    group = group_of(nodeid)
    if group in _FIRST:
        return following is None or group_of(following) != group
    return precedes_clusters(nodeid) and not precedes_clusters(following)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out whole groups, which ``--dist loadgroup`` of xdist 3.8 does not under pytest 9."""

    def remove_node(self, node: Any) -> str | None:  # noqa: ANN401 - xdist has no type for it
        """Return the test in which the worker crashed, which xdist would run again; None: none.

        Another worker gets what is left of the groups: xdist would hand out finished ones too, and
        a worker with too little to do waits for ever.
        """
        units = self.assigned_work[node]
        left = [(unit, test) for unit in units.values() for test, over in unit.items() if not over]
        if left:
            unit, test = left[0]
            unit[test] = True
        for scope in [scope for scope, unit in units.items() if all(unit.values())]:
            del units[scope]
        super().remove_node(node)
        for scope in units:
            if scope in self.workqueue:
                self.workqueue.move_to_end(scope, last=False)
        return left[0][1] if left else None

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
