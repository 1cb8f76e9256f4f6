"""What ``homeport doctor`` looks at, area by area. An area that does not answer is a finding."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.doctor.clock_checks import check_clocks
from homeport.appmaster.doctor.clock_facts import clocks_ahead
from homeport.appmaster.doctor.finding import Check, Finding
from homeport.appmaster.doctor.kafka_checks import (
    TRANSACTION_STATE,
    check_brokers,
    check_topic,
    check_transaction_state,
)
from homeport.appmaster.doctor.kafka_facts import kafka_facts
from homeport.appmaster.doctor.machine_checks import check_machine
from homeport.appmaster.doctor.machine_facts import machine_facts
from homeport.appmaster.doctor.node_checks import NodeNeeds, check_node
from homeport.appmaster.doctor.node_probe import probe_nodes
from homeport.appmaster.doctor.topic_uses import topic_uses
from homeport.appmaster.doctor.yarn_checks import check_fit, check_names, check_nodes
from homeport.appmaster.doctor.zookeeper_checks import check_servers, check_session
from homeport.appmaster.doctor.zookeeper_facts import server_facts, session_facts
from homeport.appmaster.yarn.kerberos import kerberos_login
from homeport.appmaster.yarn.node_names import NodeNames
from homeport.appmaster.yarn.resource_manager_rest import CONF_DIR_VARIABLE, ResourceManagerRest
from homeport.cli.yarn.cluster_check import cluster_facts
from homeport.config.config import Config
from homeport.config.declarations.standalone_keys import YARN, ZOOKEEPER
from homeport.config.errors import HomeportError, UnavailableError
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.sections import JobConfig, SystemConfig, YarnConfig
from homeport.config.settings.standalone_section import StandaloneConfig, coordinator_of
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.settings.used_systems import used_systems
from homeport.container.native import record_queue
from homeport.job_coordinator.model.ids import Host

_TRANSACTION_TIMEOUT = "transaction.timeout.ms"
_DEFAULT_TRANSACTION_TIMEOUT_MS = 10_000
_DEFAULT_QUEUE = "default"


class Area(StrEnum):
    """What is looked at, in this order."""

    MACHINE = "machine"
    KAFKA = "kafka"
    ZOOKEEPER = "zookeeper"
    YARN = "yarn"
    CLOCKS = "clocks"
    NODES = "nodes"


@dataclass(frozen=True, slots=True)
class NodeQuestion:
    """``free_mb``: of the disk with a node's state; ``limit_s``: until all nodes must answer."""

    free_mb: int
    limit_s: float


def findings(
    areas: Collection[Area],
    config: Config | None,
    question: NodeQuestion,
    say: Callable[[str], None],
) -> Iterator[Finding]:
    """Yield what is found in ``areas``. ``config``: of a job; None: no job is given.

    Nothing is looked at that has no meaning: Kafka without a job, YARN where ZooKeeper has the job.
    """
    on_yarn = config is None or coordinator_of(config) in {None, YARN}
    has_cluster = bool(os.environ.get(CONF_DIR_VARIABLE)) and on_yarn
    if Area.MACHINE in areas:
        needs_java = has_cluster or (config is not None and PipelineConfig.of(config) is not None)
        facts = machine_facts(os.environ, record_queue.fault())
        yield from check_machine(facts, needs_java=needs_java, needs_yarn=has_cluster)
        if has_cluster and Area.NODES in areas and None in {facts.java, facts.yarn}:
            areas = set(areas) - {Area.NODES}  # what would fail has its finding
            why = "nodes are not looked at: this machine's errors come first"
            yield Check("node.probe", "YARN").unknown(why)
    if Area.KAFKA in areas and config is not None:
        for name in used_systems(config):
            yield from _kafka(config, name)
    if Area.ZOOKEEPER in areas and config is not None and coordinator_of(config) == ZOOKEEPER:
        yield from _zookeeper(config)
    if not on_yarn or not ({Area.YARN, Area.CLOCKS, Area.NODES} & set(areas)):
        return
    if has_cluster or (config is not None and coordinator_of(config) == YARN):
        yield from _cluster(areas, config, question, say)
    else:
        why = f"{CONF_DIR_VARIABLE} is not set: no cluster is looked at"
        yield Check("yarn.reachable", "ResourceManager").unknown(why)


def _cluster(
    areas: Collection[Area],
    config: Config | None,
    question: NodeQuestion,
    say: Callable[[str], None],
) -> Iterator[Finding]:
    try:
        rest = ResourceManagerRest.from_environment(os.environ)
        rest.require_reachable()
        running = [node.report for node in rest.nodes() if node.report.is_live]
    except UnavailableError as fault:
        yield Check("yarn.reachable", "ResourceManager").error(
            str(fault), "start it, or correct that"
        )
        return
    yield Check("yarn.reachable", "ResourceManager").ok(f"answers at {rest.url}")
    if Area.YARN in areas:
        yield from check_nodes(rest.host_reports())
        yield from check_names(_addresses({report.host for report in running}))
        if config is not None:
            yield from check_fit(config, cluster_facts(config, rest, os.environ))
    if Area.CLOCKS in areas:
        yield from check_clocks(clocks_ahead(_web_services(rest, running)))
    if Area.NODES in areas:
        yield from _nodes(config, rest, running, question, say)


def _zookeeper(config: Config) -> Iterator[Finding]:
    settings = StandaloneConfig.of(config)
    servers = server_facts(settings)
    yield from check_servers(servers, settings.session_timeout_ms, settings.admin_port)
    try:
        facts = session_facts(config, settings)
    except HomeportError as fault:
        remedy = "start it, or correct what the job shows it (job.coordinator.zk)"
        yield Check("zookeeper.reachable", "ZooKeeper").error(str(fault), remedy)
        return
    yield Check("zookeeper.reachable", "ZooKeeper").ok(f"answers at {settings.connect}")
    yield from check_session(facts)


def _kafka(config: Config, name: str) -> Iterator[Finding]:
    system = SystemConfig.of(config, name)
    uses = topic_uses(config).get(name, ())
    try:
        facts = kafka_facts(system, [*(use.name for use in uses), TRANSACTION_STATE])
    except UnavailableError as fault:
        remedy = "start a broker, or correct the addresses"
        yield Check("kafka.reachable", f"system {name!r}").error(str(fault), remedy)
        return
    given = system.producer.get(_TRANSACTION_TIMEOUT)
    yield from check_brokers(facts, int(given or _DEFAULT_TRANSACTION_TIMEOUT_MS))
    yield from check_transaction_state(facts)
    for use in uses:
        yield from check_topic(facts, use)


def _addresses(hosts: Iterable[Host]) -> dict[Host, str]:
    names, found = NodeNames.from_environment(os.environ), {}
    for host in hosts:
        with contextlib.suppress(UnavailableError):
            found[host] = names.address(host)
    return found


def _web_services(rest: ResourceManagerRest, running: Iterable[HostReport]) -> dict[str, str]:
    names = NodeNames.from_environment(os.environ)
    scheme = urlsplit(rest.url).scheme
    found = {
        str(report.host): f"{scheme}://{names.with_known_address(report.web)}/node"
        for report in running
    }
    return {"ResourceManager": f"{rest.url}/ws/v1/cluster/info", **found}


def _nodes(
    config: Config | None,
    rest: ResourceManagerRest,
    running: Iterable[HostReport],
    question: NodeQuestion,
    say: Callable[[str], None],
) -> Iterator[Finding]:
    hosts = sorted({report.host for report in running})
    if not hosts:
        return
    needs = _needs(config, question.free_mb)
    variables = {} if needs.python is None else {"HOMEPORT_PROBED_PYTHON": needs.python}
    yarn = None if config is None else YarnConfig.of(config)
    base = None if config is None else JobConfig.of(config).logged_store_base_dir
    try:
        answers = probe_nodes(
            hosts,
            scheme=urlsplit(rest.url).scheme,
            queue=_DEFAULT_QUEUE if yarn is None else yarn.queue,
            label="" if yarn is None else yarn.container_label or "",
            variables={**variables, "HOMEPORT_LOGGED_STORE_BASE_DIR": base or ""},
            login=None if config is None else kerberos_login(config),
            limit_s=question.limit_s,
            say=say,
        )
    except HomeportError as fault:
        yield Check("node.probe", "YARN").error(str(fault), "correct that, or look with --no-probe")
        return
    for host, answer in answers.items():
        yield from check_node(host, answer, needs)


def _needs(config: Config | None, free_mb: int) -> NodeNeeds:
    if config is None:
        return NodeNeeds(None, has_pipeline=False, has_state=True, free_mb=free_mb)
    yarn = YarnConfig.of(config)
    travels = yarn.python_archive is not None
    return NodeNeeds(
        python=None if travels else yarn.python_executable,
        has_pipeline=PipelineConfig.of(config) is not None,
        has_state=bool(StorageConfig.of(config).stores),
        free_mb=free_mb,
    )
