"""Whether the containers of a cluster find each other by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from docker_cluster.engine import DockerError, Engine


def require(engine: Engine, containers: Mapping[str, str], addresses: Mapping[str, str]) -> None:
    """Check that each running container finds each name at its address.

    ``addresses``: {service: its address}, of ``containers`` at least.

    DockerError: the first that does not; the line has the name and what it finds.
    """
    with ThreadPoolExecutor(len(containers)) as pool:
        asked = pool.map(partial(_ask, engine, tuple(containers)), containers.values())
        for service, stated in zip(containers, asked, strict=True):
            for name in containers if stated is not None else ():
                found = addresses_in(stated or "").get(name)
                if found != addresses[name]:
                    raise DockerError(
                        f"{service} finds {name} at {found or 'no address'}, and it is at "
                        f"{addresses[name]}: names are broken in its container: docker/down, "
                        "then docker/up"
                    )


def addresses_in(stated: str) -> dict[str, str]:
    """Return {name: address} from what ``getent ahostsv4`` prints."""
    found = re.findall(r"^(\S+) +\S+ +(\S+)$", stated, re.MULTILINE)
    return {name: address for address, name in found}


def _ask(engine: Engine, names: tuple[str, ...], container: str) -> str | None:
    """The names with their addresses, as in the container; None: it does not run."""
    done = engine.call("exec", container, "getent", "ahostsv4", *names, limit_s=60)
    return None if "is not running" in done.stderr else done.stdout
