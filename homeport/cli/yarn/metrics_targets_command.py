"""``homeport metrics-targets``: where Prometheus finds the metrics of running jobs."""

import functools
import json
import os
import threading
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from homeport.appmaster.yarn.resource_manager_rest import (
    CONF_DIR_VARIABLE,
    Application,
    ResourceManagerRest,
)
from homeport.appmaster.yarn.scrape_targets import TargetServer, of_yarn, why_left_out
from homeport.appmaster.yarn.submission import job_tag
from homeport.cli.options import described, loaded, new_app, note
from homeport.cli.yarn.application import am_address
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.standalone.plan import Registration
from homeport.job_coordinator.zookeeper.tool_session import registered_processors

_SOURCE = "metrics-targets"
_STANDALONE = "standalone"
"""The label ``application`` of a standalone job, which has no id of YARN."""
_ZOOKEEPER_S = 15.0

app = new_app()


@app.command(name="metrics-targets")
@described(
    listen="HOST:PORT to serve them at, until it is interrupted.",
    config_path="Properties file of a job that serves https, or is standalone; repeatable.",
)
def metrics_targets(*, listen: str | None = None, config_path: list[str] | None = None) -> None:
    """Prints the targets of all running jobs as JSON for Prometheus, or serves them.

    Printed into a file they are for file_sd_configs, served for http_sd_configs. HADOOP_CONF_DIR
    names the folder with the cluster's configuration; only the ResourceManager is needed. Each
    target is scraped through YARN's proxy and has the labels job_name, job_id and application.

    The proxy does not reach a job that serves https. With --config-path its ApplicationMaster is
    a target itself, as the job's coordinator stream in Kafka says. A standalone job is found by its
    file too: each of its processors is a target, as ZooKeeper says. Where HADOOP_CONF_DIR is not
    set, and a file names ZooKeeper, no YARN is read.
    """
    configs = [loaded(path, None) for path in config_path or ()]
    jobs, zookeeper = HttpsJobs(configs), keys.JOB_COORDINATOR_ZK_CONNECT
    standalone = [config for config in configs if zookeeper.is_set(config)]
    has_yarn = CONF_DIR_VARIABLE in os.environ or not standalone
    yarn = ResourceManagerRest.from_environment(os.environ) if has_yarn else None
    if listen is None:
        found, left_out = of_yarn(yarn, jobs.url)
        for application in left_out:
            note(why_left_out(application))
        print(json.dumps([*found, *standalone_targets(standalone)], indent=1))
        return
    host, port = _address(listen)
    others = functools.partial(standalone_targets, standalone)
    with TargetServer(yarn, host, port, jobs.url, others) as server:
        note(f"serves the targets at http://{host}:{server.server_address[1]}/")
        server.serve_forever()


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) >= 2**16:
        raise HomeportError(
            f"--listen {listen!r}: it must be HOST:PORT with a port up to 65535, as 127.0.0.1:9400"
        )
    return host, int(port)


def standalone_targets(configs: Iterable[Config]) -> list[Mapping[str, Any]]:
    """Return one target for each processor that is registered now.

    ConfigError: a configuration does not name ZooKeeper, or its credentials.
    RefusedError: ZooKeeper refuses the user, or gives it no right.
    UnavailableError: ZooKeeper does not answer.
    """
    return [
        target(config, registration)
        for config in configs
        for registration in registered_processors(config, _ZOOKEEPER_S)
        if registration.url
    ]


def target(config: Config, registration: Registration) -> Mapping[str, Any]:
    """Return the processor's target for Prometheus."""
    job, place = JobConfig.of(config), urllib.parse.urlsplit(registration.url)
    return {
        "targets": [place.netloc],
        "labels": {
            "__scheme__": place.scheme,
            "__metrics_path__": f"{place.path}metrics",
            "job_name": job.name,
            "job_id": job.id,
            "application": _STANDALONE,
        },
    }


class HttpsJobs:
    """Some jobs, by their configurations; ``url`` may be called from several threads.

    A coordinator stream is opened when its job is seen to run, and stays open.
    """

    def __init__(self, configs: Iterable[Config]) -> None:
        self._configs = {job_tag(config): config for config in configs}
        self._stores: dict[str, CoordinatorStreamStore] = {}
        self._lock = threading.Lock()

    def url(self, application: Application) -> str | None:
        """Return where its AM answers; "": nowhere yet; None: it is none of these jobs."""
        tag = next((tag for tag in application.tags if tag in self._configs), None)
        if tag is None:
            return None
        with self._lock:
            store = self._stores.get(tag)
            if store is None:
                store = CoordinatorStreamStore.of(self._configs[tag], source=_SOURCE)
                store.bootstrap()
                self._stores[tag] = store
            address = am_address(store, application.application_id)
        return "" if address is None else address.url
