"""Prometheus and Grafana beside the cluster: their images, addresses, and whether they serve.

Prometheus is Debian's, in an image of its own that is built here. Grafana's is the public one: no
package of Debian has it, so without a registry Prometheus is there alone.
"""

from __future__ import annotations

import http.client
import tempfile
from collections.abc import Mapping
from pathlib import Path

from docker_cluster import image
from docker_cluster.engine import Engine, folder
from homeport.local_cluster.jars import Progress

FOLDER = image.ROOT / "docker" / "observability"
GRAFANA_IMAGE = "grafana/grafana:11.6.0"
PROFILE = "observability"
TARGETS, PROMETHEUS, GRAFANA = "targets", "prometheus", "grafana"
SERVICES = (TARGETS, PROMETHEUS, GRAFANA)
_NAME = "homeport-prometheus"
_READY = {PROMETHEUS: ("PROMETHEUS_PORT", "/-/ready"), GRAFANA: ("GRAFANA_PORT", "/api/health")}


def prometheus_image() -> str:
    """Return the name of the image that fits this clone, whether it is there or not."""
    return f"{_NAME}:{image.digest((FOLDER / 'Dockerfile').read_bytes())}"


def ensure_prometheus(engine: Engine, cache: Path, progress: Progress) -> str:
    """Return the name of the image of Prometheus and promtool; it is built now if it is not there.

    DockerError: it cannot be built; the message names the log.
    """
    name = prometheus_image()
    context = folder(cache) / "context"
    context.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="prometheus-", dir=context) as target:
        (Path(target) / "Dockerfile").write_bytes((FOLDER / "Dockerfile").read_bytes())
        image.build(engine, cache, name, Path(target), progress)
    return name


def ensure(engine: Engine, cache: Path, progress: Progress) -> tuple[str, ...]:
    """Return the services that can be started; their images are there.

    DockerError: the image of Prometheus cannot be built.
    """
    ensure_prometheus(engine, cache, progress)
    if engine.has(GRAFANA_IMAGE) or engine.pull(GRAFANA_IMAGE, progress):
        return SERVICES
    progress(
        f"Prometheus starts without Grafana: {GRAFANA_IMAGE} is not here and no registry has it"
    )
    return tuple(s for s in SERVICES if s != GRAFANA)


def addresses(ports: Mapping[str, int]) -> dict[str, str]:
    """Return {service: its address on loopback} of those that have one."""
    return {
        s: f"http://127.0.0.1:{ports[port]}" for s, (port, _) in _READY.items() if port in ports
    }


def serves(service: str, ports: Mapping[str, int]) -> bool:
    """Return whether Prometheus, or Grafana, says that it is ready."""
    port, path = _READY[service]
    connection = http.client.HTTPConnection("127.0.0.1", ports[port], timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
