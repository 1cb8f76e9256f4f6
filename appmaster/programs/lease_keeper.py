"""The lease keeper's program: renews leases while the driver may be dead, hung or busy.

It has no other work, and it alone decides that a lease has run out (safety L1). It renews only
while its attempt's rank is the highest in the coordinator stream, which it reads itself
(safety L2). It also finds out that the attempt is cut off, and ends it then.
"""

import asyncio
import logging
import os
import sys
from pathlib import Path

from homeport.appmaster.attempt.heartbeat import Heartbeat
from homeport.appmaster.attempt.supervision import EXIT_FINAL, exit_without_port
from homeport.appmaster.lease.keeper_client import SOCKET_NAME
from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import (
    NODE_EXPIRY_KEY,
    LeaseTable,
    RenewalGuard,
    limit_ms,
    unseen_ms,
)
from homeport.appmaster.programs.am_container import AmContainer, await_kafka
from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import CannotListenError, ConfigError, HomeportError, UnavailableError
from homeport.config.settings.sections import ClusterManagerConfig, JobConfig
from homeport.job_coordinator import logs
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.configuration import AM_SOURCE, ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, Rank
from homeport.job_coordinator.model.silence import Silence

_WATCH_S = 0.5
_KAFKA_TIMEOUT_S = 5.0

log = logging.getLogger("keeper")


def look(stream: CoordinatorStream, guard: RenewalGuard, rank: Rank) -> int:
    """Update the guard from the coordinator stream, unless Kafka is silent.

    Return the generation of the job's token; 0: Kafka is silent, or there is no such record.
    """
    sent_ms = boot_ms()
    try:
        stream.catch_up()
    except UnavailableError as e:
        log.warning("%s", e)
        return 0
    guard.fetched_ms = sent_ms
    last = EpochManager(stream).read_am_epoch()
    guard.is_outranked = last is not None and last.rank.is_above(rank)
    try:
        return keys.JOB_COORDINATOR_ACCESS_GENERATION.read(ConfigManager(stream).read())
    except ConfigError as e:  # of a tool that checks nothing; the driver does not take it either
        log.warning("%s", e)
        return 0


def answers(resource_manager: ResourceManagerRest) -> bool:
    """Return whether the ResourceManager answers."""
    try:
        resource_manager.require_reachable()
    except UnavailableError as e:
        log.warning("%s", e)
        return False
    return True


async def watch(
    container: AmContainer,
    stream: CoordinatorStreamStore,
    guard: RenewalGuard,
    access: ServedAccess,
    unreached_ms: int,
) -> str:
    """Watch coordinator stream and ResourceManager until this attempt is over; return the reason.

    ``guard`` gets the findings. ``unreached_ms``: how long a container that an isolated attempt has
    permitted can live.

    UnavailableError: the container does not know its ResourceManager.
    """
    resource_manager = ResourceManagerRest.from_folder(container.folder)
    expiry = await asyncio.to_thread(resource_manager.setting, NODE_EXPIRY_KEY)
    silence = Silence(limit_ms(unreached_ms, expiry))
    while not guard.is_outranked:
        await asyncio.sleep(_WATCH_S)
        last_ms = guard.fetched_ms
        access.exchange(await asyncio.to_thread(look, stream, guard, container.rank))
        # A request to the ResourceManager only while Kafka is silent: spare it the load.
        is_answered = guard.fetched_ms != last_ms or await asyncio.to_thread(
            answers, resource_manager
        )
        if silence.asked(boot_ms(), is_answered=is_answered):
            return (
                f"neither Kafka nor the ResourceManager has answered for {silence.limit_ms} ms: "
                "this attempt is over"
            )
    return "a higher rank has taken over: no lease is renewed any more"


async def keep(container: AmContainer, stream: CoordinatorStreamStore, heartbeat: Heartbeat) -> int:
    """Keep leases until a higher rank is seen or the attempt is isolated; return the exit code.

    HomeportError: this process cannot go on.
    """
    # The keeper's settings change with a submission only.
    config = container.submission.submitted.config
    manager = ClusterManagerConfig.of(config)
    guard = RenewalGuard(JobConfig.of(config).isolation_max_ms)
    table = LeaseTable(manager.lease_ms, boot_ms())
    access = container.served()
    server = LeaseServer(
        table, guard, lease_ms=manager.lease_ms, attempt=container.attempt, access=access
    )
    host = manager.url_host or container.names.address(container.host)
    access.exchange(await asyncio.to_thread(look, stream, guard, container.rank))
    url = await server.start(host, heartbeat.port or 0, Path(SOCKET_NAME))
    heartbeat.send_port(int(url.rstrip("/").rpartition(":")[2]))
    log.info("leases of %d ms are renewed at %s", manager.lease_ms, url)
    try:
        unreached_ms = unseen_ms(guard.isolation_ms, manager.lease_ms)
        log.error(await watch(container, stream, guard, access, unreached_ms))
    finally:
        await server.stop()
    return EXIT_FINAL


def main() -> int:
    """Keep the leases of this AM container; return the exit code."""
    heartbeat = Heartbeat(os.environ)
    heartbeat.await_turn()
    heartbeat.start()
    logs.begin(sys.stdout, os.environ)
    try:
        container = AmContainer.read(os.environ, Path.cwd())
        config = container.submission.config
        await_kafka(config, log)
        with CoordinatorStreamStore.of(
            config, source=AM_SOURCE, timeout_s=_KAFKA_TIMEOUT_S, has_packages=False
        ) as stream:
            stream.bootstrap()
            return asyncio.run(keep(container, stream, heartbeat))
    except (HomeportError, OSError) as e:
        log.error("the lease keeper cannot go on: %s", e)  # noqa: TRY400 - one line says it all
        heartbeat.log_cause(str(e))
        is_port = isinstance(e, CannotListenError)
        return exit_without_port(heartbeat.port) if is_port else 1


if __name__ == "__main__":
    sys.exit(main())
