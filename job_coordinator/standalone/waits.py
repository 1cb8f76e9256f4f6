"""What a processor waits for, in words: a wait for another process names that process.

PURE.
"""

from collections.abc import Iterator

from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.standalone import leading
from homeport.job_coordinator.standalone.protocol import BarrierPhase
from homeport.job_coordinator.standalone.state import ProcessorState
from homeport.job_coordinator.status.shape import ShownChange


def waits(state: ProcessorState) -> Iterator[str]:
    """Yield what the processor waits for, and what its job waits for."""
    entry, twin = state.entry, state.twin
    if not state.is_connected:
        yield "for ZooKeeper to answer"
    elif twin is not None:
        yield f"for the end of registration {twin.sequence} at {twin.location}, which has its id"
    elif entry is None:
        yield f"for a version after {state.version} that has a place for it"
    elif not entry.tasks:
        yield f"for tasks: version {state.version} has none for it"
    elif state.barrier_phase is None and state.work.generation != entry.generation:
        yield f"for ZooKeeper to show the barrier of version {state.version}"
    barrier = change(state)
    if barrier is not None:
        missing = ", ".join(barrier.missing)
        step = f"{missing} have joined" if missing else f"{_leader(state)}, which leads, has closed"
        yield f"until {step} version {barrier.version}"
    yield from _next_version(state)


def _next_version(state: ProcessorState) -> Iterator[str]:
    cause = leading.due(state)
    is_under_way = state.computing >= 0 or state.publishing
    if not state.is_connected or not (cause or is_under_way):
        return
    if not state.is_leader:
        step = f"{_leader(state)} leads"
    elif state.computing >= 0:
        step = "it is computed from what Kafka and ZooKeeper answer"
    elif state.publishing:
        step = "ZooKeeper takes it"
    else:
        step = f"nothing may change for {keys.JOB_DEBOUNCE_TIME_MS.name}"
    yield f"for version {state.version + 1}{cause and f' ({cause})'}: {step}"


def _leader(state: ProcessorState) -> str:
    first = next(iter(state.registrations), None)
    return "the first processor" if first is None else f"{first.processor_id} at {first.location}"


def change(state: ProcessorState) -> ShownChange | None:
    """Return the open barrier of the newest version.

    ``missing``: the members that have not joined it.
    """
    if state.plan is None or state.barrier_phase is not BarrierPhase.NEW:
        return None
    missing = tuple(leading.missing(state))
    return ShownChange(version=state.version, barrier=BarrierPhase.NEW.value, missing=missing)
