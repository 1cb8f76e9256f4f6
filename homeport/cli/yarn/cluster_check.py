"""What ``run-job`` says of the cluster before it submits: what host affinity needs and misses."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from homeport.appmaster.yarn.host_affinity import ClusterFacts, refusals
from homeport.appmaster.yarn.node_names import NodeNames
from homeport.appmaster.yarn.resource_manager_rest import (
    CONF_DIR_VARIABLE,
    ResourceManagerRest,
    read_hadoop_files,
)
from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import YarnConfig

_QUEUES_FILE = "capacity-scheduler.xml"

log = logging.getLogger("run-job")


def require_fit(config: Config, facts: ClusterFacts, url: str) -> None:
    """Require that the cluster can run the job, and that containers can come home.

    ``url``: of the ResourceManager. ConfigError: the first thing that is in the way.
    UnavailableError: no node runs.
    """
    for error in refusals(config, facts):
        raise error
    if not facts.running:
        raise UnavailableError(
            f"YARN ResourceManager at {url}: no NodeManager is running: start one"
        )


def cluster_facts(
    config: Config, rest: ResourceManagerRest, environment: Mapping[str, str]
) -> ClusterFacts:
    """Return what the ResourceManager shows, and one of its nodes; daemons may keep settings back.

    UnavailableError: the ResourceManager does not answer.
    """
    yarn, scheduler = YarnConfig.of(config), rest.scheduler()
    partition = rest.partition(scheduler, yarn.queue, yarn.container_label)
    running = [node for node in rest.nodes() if node.report.is_live]
    own = [node for node in running if partition is None or partition.has(node.labels)]
    names = NodeNames.from_environment(environment)
    folder = Path(environment.get(CONF_DIR_VARIABLE, ""))
    return ClusterFacts(
        scheduler=scheduler,
        running=tuple(running),
        partition=partition,
        resource_manager=_shown_by(rest.settings),
        node=_shown_by(lambda: rest.node_settings(names.with_known_address(own[0].report.web)))
        if own
        else {},
        node_name=own[0].report.host if own else "",
        queues_file=read_hadoop_files(folder, (_QUEUES_FILE,)),
    )


def _shown_by(settings: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Empty where the daemon does not show them."""
    try:
        return settings()
    except UnavailableError as error:
        log.debug("no settings to check: %s", error)
        return {}
