"""The lease keeper's program: renews leases while the driver may be dead, hung or busy.

It has nothing else to do, and is the only one that says that a lease has run out (safety L1). It
renews only while its attempt's rank is the highest in the coordinator stream, which it reads for
itself (safety L2).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

from homeport.appmaster.runtime.am_container import AmContainer
from homeport.appmaster.runtime.clocks import boot_ms
from homeport.appmaster.runtime.heartbeat import Heartbeat
from homeport.appmaster.runtime.kafka_wait import await_kafka
from homeport.appmaster.runtime.keeper_link import SOCKET_NAME
from homeport.appmaster.runtime.lease_server import LeaseServer
from homeport.appmaster.runtime.lease_table import LeaseTable, RenewalGuard
from homeport.appmaster.runtime.supervision import EXIT_FINAL
from homeport.config.errors import HomeportError, UnavailableError
from homeport.config.sections import ClusterManagerConfig, JobConfig, SystemConfig
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.epochs import EpochManager, Rank

_WATCH_S = 0.5
_KAFKA_TIMEOUT_S = 5.0

log = logging.getLogger("keeper")


def look(stream: CoordinatorStreamStore, guard: RenewalGuard, rank: Rank) -> None:
    """The guard knows what the coordinator stream says now; unchanged where Kafka is silent."""
    sent_ms = boot_ms()
    try:
        stream.catch_up()
    except UnavailableError as e:
        log.warning("%s", e)
        return
    guard.fetched_ms = sent_ms
    last = EpochManager(stream).read_am_epoch()
    guard.is_outranked = last is not None and last.rank.is_above(rank)


async def keep(container: AmContainer, stream: CoordinatorStreamStore, heartbeat: Heartbeat) -> int:
    """Keeps leases until a higher rank is seen; the exit code.

    Raises:
        HomeportError: this process cannot go on.
    """
    # What the keeper needs of it changes with a submission only.
    config = container.submission.submitted.config
    manager = ClusterManagerConfig.of(config)
    guard = RenewalGuard(JobConfig.of(config).isolation_max_ms)
    table = LeaseTable(manager.lease_ms, boot_ms())
    server = LeaseServer(
        table,
        guard,
        lease_ms=manager.lease_ms,
        attempt=container.attempt,
        token=container.token,
    )
    host = manager.url_host or container.names.address(container.host)
    await asyncio.to_thread(look, stream, guard, container.rank)
    url = await server.start(host, heartbeat.port or 0, Path(SOCKET_NAME))
    heartbeat.tell_port(int(url.rstrip("/").rpartition(":")[2]))
    log.info("leases of %d ms are renewed at %s", manager.lease_ms, url)
    try:
        while not guard.is_outranked:
            await asyncio.sleep(_WATCH_S)
            await asyncio.to_thread(look, stream, guard, container.rank)
    finally:
        await server.stop()
    log.error("a higher rank has taken over: no lease is renewed any more")
    return EXIT_FINAL


def main() -> int:
    """Keeps the leases of this AM container; the exit code."""
    heartbeat = Heartbeat(os.environ)
    heartbeat.start()
    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        container = AmContainer.read(os.environ, Path.cwd())
        config = container.submission.config
        job = JobConfig.of(config)
        system = SystemConfig.of(config, job.coordinator_system)
        await_kafka(config, log)
        with CoordinatorStreamStore(
            system, job.coordinator_topic, source="homeport", timeout_s=_KAFKA_TIMEOUT_S
        ) as stream:
            stream.bootstrap()
            return asyncio.run(keep(container, stream, heartbeat))
    except (HomeportError, OSError) as e:
        log.error("the lease keeper cannot go on: %s", e)  # noqa: TRY400 - one line says it all
        return 1


if __name__ == "__main__":
    sys.exit(main())
