"""The program that waits for an incarnation's end and writes it to the coordinator stream.

A launcher starts it where the AM may never get the report of the stop (safety A4). It is a program
of its own for two reasons. A launcher has no Kafka client, which would double its memory. And YARN
by default kills the process group of a container 0.25 s after SIGTERM, while a child may take
``task.shutdown.ms`` to end. So this program has a session of its own, holds the child's pidfd, and
writes only once the kernel reports the end of the process. It ends by itself, within a bound.

Its brief comes on standard input, since it may hold secrets.
"""

import logging
import os
import select
import sys

from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.container.launcher.stop_reporter import Brief
from homeport.job_coordinator import logs
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.lifecycle import StopManager

_KAFKA_TIMEOUT_S = 10.0

log = logging.getLogger("witness")


def has_ended(pid_fd: int, wait_ms: int) -> bool:
    """Return whether the process has ended within the time; a pidfd is readable from then on."""
    poll = select.poll()
    poll.register(pid_fd, select.POLLIN)
    return bool(poll.poll(wait_ms))


def testify(brief: Brief) -> bool:
    """Return whether the coordinator stream has the incarnation's stop by now.

    HomeportError: Kafka does not take the record.
    """
    with CoordinatorStreamStore.of(
        Config(brief.config), source="homeport", timeout_s=_KAFKA_TIMEOUT_S
    ) as stream:
        if brief.pid_fd is not None and not has_ended(brief.pid_fd, brief.wait_ms):
            return False
        StopManager(stream).write(brief.incarnation, brief.cause)
    return True


def main() -> int:
    """Wait and write; exit code 0 where the record is in the stream."""
    logs.begin(sys.stdout, os.environ)
    try:
        brief = Brief.from_json(sys.stdin.buffer.read())
        name = f"processor {brief.incarnation.processor_id} epoch {brief.incarnation.epoch}"
        if testify(brief):
            log.info("%s has stopped: set-stopped is written", name)
            return 0
        log.error("%s has not stopped within %d ms", name, brief.wait_ms)
    except HomeportError as e:
        log.error("set-stopped is not written: %s", e)  # noqa: TRY400 - one line says it all
    return 1


if __name__ == "__main__":
    sys.exit(main())
