"""Checks that a YARN cluster is fit for a job. PURE.

``host_affinity`` has the rules for scheduler and daemons; here their violations become findings.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.doctor.finding import Check, Finding, Level
from homeport.appmaster.yarn.host_affinity import ClusterFacts, refusals, warnings
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.ids import Host


def check_nodes(hosts: Sequence[HostReport]) -> Iterator[Finding]:
    """Check that NodeManagers run, and that there is a host to fail over to."""
    running = [host for host in hosts if host.is_live]
    absent = [host.host for host in hosts if not host.is_live]
    subject = f"{len(hosts)} hosts"
    nodes = Check("yarn.nodes", subject)
    if not running:
        yield nodes.error("no NodeManager is running", "start one")
        return
    if absent:
        yield nodes.warning(
            f"not running: {', '.join(absent)}",
            "look at the NodeManager's log there; a container whose home is there waits for it, "
            "then goes to another host",
        )
    if len(running) == 1:
        yield nodes.warning("one is running", "run two, to fail over and for standbys")
    elif not absent:
        yield nodes.ok("all are running")


def check_names(addresses: Mapping[Host, str]) -> Iterator[Finding]:
    """Check that no two hosts are one machine. ``addresses``: of those that run."""
    names = defaultdict(list)
    for host, address in sorted(addresses.items()):
        names[address].append(host)
    for address, hosts in names.items():
        if len(hosts) > 1:
            yield Check("yarn.names", address).warning(
                f"{' and '.join(hosts)} have this address: an active container and its standby "
                "may be on one machine",
                "end the NodeManager under the name that is not used, or wait until YARN has "
                "given it up",
            )


def check_fit(config: Config, facts: ClusterFacts) -> Iterator[Finding]:
    """Check that scheduler and daemons let the job run and its containers return to their hosts."""
    found = [
        *(_finding(Level.ERROR, fault) for fault in refusals(config, facts)),
        *(_finding(Level.WARNING, fault) for fault in warnings(config, facts)),
    ]
    yield from found
    if not found:
        yield Check("yarn.settings", facts.scheduler.kind).ok("has what host affinity needs")
    for whose, settings in (("ResourceManager", facts.resource_manager), ("nodes", facts.node)):
        if not settings:
            yield Check("yarn.settings", whose).unknown("its settings cannot be read from here")


def _finding(level: Level, fault: ConfigError) -> Finding:
    value = "not set" if fault.value is None else fault.value
    return Finding("yarn.settings", level, f"{fault.key} = {value}", fault.rule, fault.remedy)
