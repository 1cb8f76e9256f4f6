"""The stream container's program: ``python -m homeport.container.incarnation.container_runner``.

It runs an active container or a standby, whichever the JobModel says that its processor is. The
permit comes on standard input, at once or after a long wait; until then the process does nothing of
the job, but for imports. When standard input ends without one, so does the process.

Exit codes: 0 when every task has voted for the end, which the lease memory says too, as any code
can exit with 0; 143 after SIGTERM, 72 when Kafka or the AM was away for too long, 73 when Kafka was
for this host alone, 74 when it was overtaken in its start, 1 after a failure; the cause is the last
line of the output. Little is imported before the signal handler stands, and what an end needs is
imported before the start: the working directory may vanish under a container that is being stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from homeport.config.errors import HomeportError, UnavailableError, in_one_line
from homeport.container.host.exit_codes import EXIT_CUT_OFF, EXIT_OVERTAKEN, EXIT_UNAVAILABLE
from homeport.container.host.lease_memory import (
    LeaseMemory,
    NoLauncher,
    SpareKind,
    watch_lease,
)
from homeport.container.host.stop_flag import OvertakenError, StopFlag, StopRequestedError
from homeport.container.incarnation.warm_up import GettingReady

if TYPE_CHECKING:
    from homeport.container.container_job import ContainerJob
    from homeport.container.incarnation.standby_container import StandbyContainer
    from homeport.container.incarnation.standby_tasks import StandbysOnly, StandbyTasks
    from homeport.container.incarnation.stream_container import StreamContainer
    from homeport.container.storage.task_store import Reached

_LOG = logging.getLogger(__name__)

FINISHED = 0
STOPPED = 143
FAILED = 1

_PIECE = 65536


def main(arguments: Sequence[str] | None = None, reached: Reached | None = None) -> NoReturn:
    """Runs one incarnation and ends the process, with nothing of it left behind.

    Args:
        arguments: of the command line; None: this process's.
        reached: gets each step of a transaction and of a flush when it is done.
    """
    memory = watch_lease(os.environ)
    stop = StopFlag()

    def terminated(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, terminated)
    parser = argparse.ArgumentParser(prog="container_runner")
    kinds = [known.name.lower() for known in SpareKind]
    parser.add_argument(
        "--ready", choices=kinds, default=kinds[0], help="what is done while no permit is there"
    )
    kind = SpareKind[parser.parse_args(arguments).ready.upper()]
    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    ready = GettingReady(memory or NoLauncher())
    ready.begin(kind)
    permit = _await_permit(stop)
    if permit is None:
        ready.stop()
        _end(STOPPED, None)
    code, cause = _run(permit, stop, memory, ready, reached)
    if code == FINISHED and memory is not None:
        memory.say_finished()
    _end(code, cause)


def _await_permit(stop: StopFlag) -> str | None:
    """The permit from standard input; None where there is to be none."""
    text = bytearray()
    while not stop.wait_for_input(0):
        piece = os.read(0, _PIECE)
        if not piece:
            return text.decode() or None
        text += piece
    return None


def _run(
    permit_text: str,
    stop: StopFlag,
    memory: LeaseMemory | None,
    ready: GettingReady,
    reached: Reached | None = None,
) -> tuple[int, str | None]:
    """(exit code, cause in one line). ``memory``: where the launcher finds reports."""
    container: StreamContainer | StandbyContainer | StandbysOnly | None = None
    try:
        container = _prepared(permit_text, stop, memory, ready, reached)
        _watch(stop, container.shutdown_ms, container.kill_children)
        if container.run():
            return FINISHED, None
    except StopRequestedError:
        _LOG.info("stopped before the first input")
    except BaseException as error:  # noqa: BLE001 - the process ends here, with the cause in its log
        if not stop.is_set():
            return _ended_by(error)
    finally:
        ready.stop()
        if container is not None:
            container.kill_children()
    return STOPPED, None


def _prepared(
    permit_text: str,
    stop: StopFlag,
    memory: LeaseMemory | None,
    ready: GettingReady,
    reached: Reached | None,
) -> StreamContainer | StandbyContainer | StandbysOnly:
    """The container of the permit's processor: what the JobModel says it is there for."""
    # Imported here: these take most of a second, and a SIGTERM in it must find its handler.
    from homeport.container.container_job import ContainerJob  # noqa: PLC0415 - as said above
    from homeport.container.host.permit import Permit  # noqa: PLC0415 - as said above
    from homeport.container.incarnation.coordinators import (  # noqa: PLC0415 - as said above
        ApplicationMaster,
        OwnProcessor,
    )
    from homeport.container.incarnation.environment import Environment  # noqa: PLC0415 - as said above
    from homeport.container.incarnation.start_up import fetch_job_model  # noqa: PLC0415 - as said above
    from homeport.job_coordinator.http.client import CoordinatorClient  # noqa: PLC0415 - as said above
    from homeport.job_coordinator.model.codec import decode_job_model  # noqa: PLC0415 - as said above

    permit = Permit.from_json(permit_text)
    of = Environment.of_processor if permit.model else Environment.of
    environment = of(os.environ, Path.cwd())
    own = permit.incarnation
    named = (own.processor_id, own.epoch, environment.host, permit.model_version, os.getpid())
    _LOG.info("processor %s epoch %d on %s, JobModel %d, pid %d", *named)
    coordinator: ApplicationMaster | OwnProcessor
    standbys: StandbyTasks | None = None
    if permit.model and memory is not None:
        model = decode_job_model(permit.model.encode())
        coordinator = OwnProcessor(memory, model.config, stop)
        from homeport.container.incarnation.standby_tasks import StandbysOnly, standbys_of_child  # noqa: PLC0415 - as said above

        model, standbys = standbys_of_child(model, permit, environment, stop, memory)
    else:
        client = CoordinatorClient(
            environment.coordinator_url, environment.token, certificate=environment.certificate
        )
        model, coordinator = fetch_job_model(client, permit, stop), ApplicationMaster(client)
    job = ContainerJob.of(model, own.processor_id)
    if memory is not None:  # without a lease there is nothing to keep
        _watch_kafka(job)
    os.environ["SAMZA_CONTAINER_ID"] = own.processor_id
    launcher = memory or NoLauncher()
    if job.is_standby and standbys is not None:
        ready.stop()
        return StandbysOnly(job, permit, environment, coordinator, stop, standbys)
    if job.is_standby and isinstance(coordinator, ApplicationMaster):
        ready.stop()
        from homeport.container.incarnation.standby_container import StandbyContainer  # noqa: PLC0415 - as said above

        return StandbyContainer(job, permit, environment, coordinator.client, stop, launcher)
    from homeport.container.incarnation.stream_container import StreamContainer  # noqa: PLC0415 - as said above

    given = (job, permit, environment, coordinator, stop, launcher, ready)
    container = StreamContainer(*given, *(() if reached is None else (reached,)))
    if standbys is not None:
        container.keep_beside(standbys)
    container.watch_calls(lambda cause: _end(FAILED, cause))
    return container


def _ended_by(error: BaseException) -> tuple[int, str]:
    """(exit code, cause in one line); the log has the rest."""
    if isinstance(error, OvertakenError):
        return EXIT_OVERTAKEN, str(error)
    code = EXIT_UNAVAILABLE if isinstance(error, UnavailableError) else FAILED
    if isinstance(error, HomeportError):
        cause, with_story = str(error), code == FAILED and error.__cause__ is not None
    else:
        cause, with_story = in_one_line(error), True
    _LOG.error("the container has failed", exc_info=error if with_story else None)
    return code, " ".join(cause.split())


def _watch(stop: StopFlag, shutdown_ms: int, kill_children: Callable[[], None]) -> None:
    """From SIGTERM on, the process lives no longer than ``shutdown_ms``.

    Whatever is cut short here costs the next start a longer read, nothing else.
    """

    def end_in_time() -> None:
        stop.wait()
        threading.Event().wait(shutdown_ms * 0.9 / 1000)
        _LOG.error("not stopped in order within task.shutdown.ms: ending as it is")
        kill_children()
        _end(STOPPED, None)

    threading.Thread(target=end_in_time, name="shutdown-watch", daemon=True).start()


def _watch_kafka(job: ContainerJob) -> None:
    from homeport.container.incarnation.kafka_watch import silence_of, watch_kafka  # noqa: PLC0415 - as in _prepared

    system, topic = job.transaction_system, job.job.coordinator_topic
    watch_kafka(system, topic, silence_of(job), lambda cause: _end(EXIT_CUT_OFF, cause))


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
