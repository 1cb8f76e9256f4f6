"""The stream container's program: ``python -m homeport.container.incarnation.container_runner``.

It runs an active container or a standby, as the JobModel has it. The permit comes on standard
input, at once or after a long wait; until then the process only imports and gets ready. If standard
input ends without a permit, so does the process. The child of a standalone processor may get
another permit once an incarnation has stopped in order (``Orders``): it keeps its imports and its
Spark, and begins as a new process does, with all fences (safety I3).

Exit codes: 0 when every task has voted for the end, which the lease memory confirms, as any code
can exit with 0; 143 after SIGTERM; 72 when Kafka or the AM was away for too long; 73 when Kafka was
away for this host alone; 74 when it was overtaken in its start; 75 when a disk had no room; 1 after
any other failure. The cause is the last line of the output. Little is imported before the signal
handler stands. All that an end needs is imported before the start: the working directory may vanish
while a container is being stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from homeport.config.errors import HomeportError, UnavailableError, in_one_line
from homeport.container.host.disk_space import is_disk_full
from homeport.container.host.exit_codes import (
    EXIT_CUT_OFF,
    EXIT_DISK_FULL,
    EXIT_OVERTAKEN,
    EXIT_UNAVAILABLE,
)
from homeport.container.host.lease_memory import LeaseMemory, SpareKind, watch_lease
from homeport.container.host.orders import Orders
from homeport.container.host.stop_flag import OvertakenError, StopFlag, StopRequestedError
from homeport.container.incarnation.warm_up import GettingReady
from homeport.job_coordinator import logs

if TYPE_CHECKING:
    from homeport.container.incarnation.context import Container, IncarnationContext
    from homeport.container.kafka.kept_clients import KeptClients
    from homeport.container.storage.kept_stores import KeptStores
    from homeport.container.storage.task_store import Reached

_LOG = logging.getLogger(__name__)

_KEPT_S = 5.0
"""How long a process that rests holds stores, which others of the host may wait for."""
_COLLECT_S = 2.0

FINISHED = 0
STOPPED = 143
FAILED = 1


def main(arguments: Sequence[str] | None = None, reached: Reached | None = None) -> NoReturn:
    """Run the incarnations of this process, then end it.

    ``reached``: gets each step of a transaction and of a flush when it is done.
    """
    memory = watch_lease(os.environ)
    orders = Orders()

    signal.signal(signal.SIGTERM, lambda _number, _frame: orders.terminate())
    parser = argparse.ArgumentParser(prog="container_runner")
    kinds = [known.name.lower() for known in SpareKind]
    parser.add_argument(
        "--ready", choices=kinds, default=kinds[0], help="what is done while no permit is there"
    )
    kind = SpareKind[parser.parse_args(arguments).ready.upper()]
    logs.begin(sys.stdout, os.environ)
    ready = GettingReady(_launcher(memory))
    ready.begin(kind)
    code, cause = _run_all(orders, memory, ready, reached)
    if code == FINISHED and memory is not None:
        memory.is_finished = True
    _end(code, cause)


def _launcher(memory: LeaseMemory | None) -> LeaseMemory:
    """Return ``memory``, or memory that no launcher reads."""
    return memory or LeaseMemory.endless()


def _run_all(
    orders: Orders, memory: LeaseMemory | None, ready: GettingReady, reached: Reached | None
) -> tuple[int, str | None]:
    """Return (exit code, cause in one line) at the end of the permits, or of the process."""
    is_first, kept = True, Keeping()
    while (permit := orders.next_permit(kept.close, _KEPT_S)) is not None:
        given = _Given(permit, orders.begin(), memory, ready, reached, is_first, kept)
        code, cause, epoch = _run(given)
        if epoch is None or memory is None:
            return code, cause
        is_first = False
        _LOG.info("epoch %d rests", epoch)
        memory.say_rests(epoch)
        threading.Thread(target=_collect_later, name="garbage", daemon=True).start()
    kept.close()
    ready.stop()
    return STOPPED, None


def _collect_later() -> None:
    """Collect what the ended incarnation has left, when the next one has probably started."""
    # A collection holds up all threads, and tasks wait for the next start. Nothing waits for this.
    time.sleep(_COLLECT_S)
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class Keeping:
    """What stays open between two incarnations; the first one that needs it makes it."""

    def __init__(self) -> None:
        self._stores: KeptStores | None = None
        self._clients: KeptClients | None = None

    def clients(self) -> KeptClients:
        """Return the clients of Kafka, which stay until the process ends."""
        # Imported here: see _prepared.
        from homeport.container.kafka.kept_clients import KeptClients  # noqa: PLC0415 - see above

        self._clients = self._clients or KeptClients()
        return self._clients

    def stores(self) -> KeptStores:
        """Return the stores."""
        # Imported here: see _prepared.
        from homeport.container.storage.kept_stores import KeptStores  # noqa: PLC0415 - see above

        self._stores = self._stores or KeptStores()
        return self._stores

    def close(self) -> None:
        """Close the stores."""
        if self._stores is not None:
            self._stores.close()


@dataclass(frozen=True)
class _Given:
    """The input of one incarnation.

    ``memory``: shared with the launcher; None: the process has no launcher. ``is_first``: whether
    the incarnation is the first of its process.
    """

    permit: str
    stop: StopFlag
    memory: LeaseMemory | None
    ready: GettingReady
    reached: Reached | None = None
    is_first: bool = True
    kept: Keeping = field(default_factory=Keeping)


def _run(given: _Given) -> tuple[int, str | None, int | None]:
    """Return (exit code, cause in one line, epoch if the process waits for another permit)."""
    container: Container | None = None
    stop, rested = given.stop, None
    over = threading.Event()
    try:
        container, epoch = _prepared(given)
        _watch(stop, over, container.shutdown_ms, container.kill_children)
        if container.run():
            return FINISHED, None, None
        rested = epoch if stop.is_to_rest and container.is_over else None
    except StopRequestedError:
        _LOG.info("stopped before the first input")
    except BaseException as error:  # noqa: BLE001 - the process ends here, with the cause in its log
        if not stop.is_set():
            return (*_ended_by(error), None)
    finally:
        over.set()
        if rested is None:
            given.kept.close()
            given.ready.stop()
            if container is not None:
                container.kill_children()
    return STOPPED, None, rested


def _prepared(given: _Given) -> tuple[Container, int]:
    """Return the container and its epoch."""
    # Imported here: this takes most of a second, and a SIGTERM in it must find its handler.
    from homeport.container.incarnation.context import IncarnationContext  # noqa: PLC0415 - see above
    from homeport.container.incarnation.kafka_watch import silence_of, watch_kafka  # noqa: PLC0415 - as above

    context = IncarnationContext.of_permit(
        given.permit, given.stop, _launcher(given.memory), given.kept.clients()
    )
    if given.memory is not None and given.is_first:  # without a lease there is nothing to keep
        job = context.job
        system, topic = job.transaction_system, job.job.coordinator_topic
        watch_kafka(system, topic, silence_of(job), lambda cause: _end(EXIT_CUT_OFF, cause))
    own = context.permit.incarnation
    os.environ["SAMZA_CONTAINER_ID"] = own.processor_id
    return _made(given, context), own.epoch


def _made(given: _Given, context: IncarnationContext) -> Container:
    from homeport.container.incarnation import standby_tasks  # noqa: PLC0415 - as in _prepared

    standbys, has_active = standby_tasks.standbys_of(context), not context.job.is_standby
    if standbys is not None and not (has_active and context.job.tasks):
        given.kept.close()
        if context.permit.model:
            given.ready.stop()
        elif context.job.task.has_pipeline:
            given.ready.begin(SpareKind.WARM)  # for the tasks that come with a failover
        return standby_tasks.StandbysOnly(context, standbys)
    if not has_active:
        given.kept.close()
        given.ready.stop()
        return standby_tasks.StandbyContainer(context)
    from homeport.container.incarnation.stream_container import StreamContainer  # noqa: PLC0415 - as in _prepared

    kept = given.kept.stores()
    container = StreamContainer(context, given.ready, standbys, given.reached, kept)
    container.watch_calls(lambda cause: _end(FAILED, cause))
    return container


def _ended_by(error: BaseException) -> tuple[int, str]:
    """Return (exit code, cause in one line); the log has the rest."""
    if isinstance(error, OvertakenError):
        return EXIT_OVERTAKEN, str(error)
    code = EXIT_DISK_FULL if is_disk_full(error) else FAILED
    if isinstance(error, UnavailableError):
        code = EXIT_UNAVAILABLE
    if isinstance(error, HomeportError):
        cause, with_story = str(error), code == FAILED and error.__cause__ is not None
    else:
        cause, with_story = in_one_line(error), True
    _LOG.error("the container has failed", exc_info=error if with_story else None)
    return code, " ".join(cause.split())


def _watch(
    stop: StopFlag, over: threading.Event, shutdown_ms: int, kill_children: Callable[[], None]
) -> None:
    """End the process ``shutdown_ms`` after the order to stop, unless it is ``over``."""

    def end_in_time() -> None:
        stop.wait()
        if over.wait(shutdown_ms * 0.9 / 1000):
            return
        _LOG.error("not stopped in order within task.shutdown.ms: ending as it is")
        kill_children()
        _end(STOPPED, None)

    threading.Thread(target=end_in_time, name="shutdown-watch", daemon=True).start()


def _end(code: int, cause: str | None) -> NoReturn:
    # Not through the interpreter's own end, which waits for what the Kafka library and pyspark
    # left; all that matters is on the disk.
    with contextlib.suppress(OSError, ValueError):
        if cause is not None:
            sys.stdout.flush()
            sys.stdout.write(f"error: {cause}\n")
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
