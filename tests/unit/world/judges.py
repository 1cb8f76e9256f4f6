"""What must be true of a world, whatever befell it. Each judge reads the logs, not the actors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from tests.unit.world.kafka import Partition, Record
from tests.unit.world.world import CHECKPOINTS, COORDINATOR, World


class UnsafeError(AssertionError):
    """A judge's verdict, with the story that led to it."""


def judge(world: World) -> None:
    """Nothing where the world is safe.

    Raises:
        UnsafeError: it is not.
    """
    for verdict in (*_drivers(world), *_writers(world), *_children(world), *_results(world)):
        raise UnsafeError(world.clock.stated(f"UNSAFE: {verdict}"))


def require(world: World, holds: bool, verdict: str) -> None:  # noqa: FBT001 - a judgement
    """Nothing where it holds; a schedule's own judgement.

    Raises:
        UnsafeError: it does not.
    """
    if not holds:
        raise UnsafeError(world.clock.stated(f"UNSAFE: {verdict}"))


@dataclass(frozen=True)
class Committed:
    """One committed record, and when its transaction's marker was written."""

    record: Record
    at_ms: int


def committed(log: Partition) -> Iterator[Committed]:
    """The committed records of a partition, in order."""
    for record in log.records:
        if record.marker is not None or record.offset in log.aborted:
            continue
        if record.writer.transactional_id is None:
            yield Committed(record, record.at_ms)
            continue
        after = log.records[record.offset :]
        marker = next((r for r in after if r.marker and r.writer == record.writer), None)
        if marker is not None:
            yield Committed(record, marker.at_ms)


def rank_of(transactional_id: str | None) -> tuple[int, str, int] | None:
    """(submission, application, attempt) of a driver's id; None for other writers."""
    parts = (transactional_id or "").split(".")
    if len(parts) < 7 or parts[3] != "am":
        return None
    return int(parts[4]), parts[5], int(parts[6])


def incarnation_of(transactional_id: str | None) -> str | None:
    """``0@1`` of an incarnation's id; None for other writers."""
    parts = (transactional_id or "").split(".")
    return f"{parts[4]}@{parts[5]}" if len(parts) == 6 and parts[3] == "processor" else None


def _drivers(world: World) -> Iterator[str]:
    """No driver's word is accepted after one of a higher rank began to act."""
    highest: tuple[int, str, int] | None = None
    for item in committed(world.broker.partition((COORDINATOR, 0))):
        rank = rank_of(item.record.writer.transactional_id)
        if rank is None:
            continue
        try:
            message = wire.decode(item.record.key or b"", item.record.value)
        except WireError:
            continue
        if message.type == MessageType.SET_AM_EPOCH:
            continue
        if highest is not None and rank < highest:
            yield f"two drivers act: {rank} wrote {message.type} after {highest} had begun"
        highest = max(highest or rank, rank)


def _writers(world: World) -> Iterator[str]:
    """No incarnation's records are accepted after a newer one of its task began to restore."""
    order = [str(f.who) for f in world.facts_of("driver:permit-granted")]
    restores = world.facts_of("container:restore-started")
    for partition, log in enumerate(world.broker.logs("counts")):
        for item in committed(log):
            writer = incarnation_of(item.record.writer.transactional_id)
            for restore in restores:
                newer = str(restore.who)
                if restore.fields["task"] != f"Partition {partition}" or writer is None:
                    continue
                is_older = writer in order and newer in order
                is_older = is_older and order.index(writer) < order.index(newer)
                if is_older and item.at_ms > restore.at_ms:
                    yield f"{writer} wrote to task {partition} after {newer} began to restore it"


def _children(world: World) -> Iterator[str]:
    """An incarnation is started once, and on evidence that the one before it has stopped."""
    for fact in world.facts_of("overlap"):
        yield f"{fact.fields['other']} still ran when {fact.who} was started"
    started = Counter(str(f.who) for f in world.facts_of("launcher:child-started"))
    for who, count in started.items():
        if count > 1:
            yield f"{who} was started {count} times"


def _results(world: World) -> Iterator[str]:
    """Each record of the input was counted at most once, in order, and the state says the same.

    A key belongs to one partition of the input. Where outputs leave at once they may be repeated,
    from the state on, and be ahead of it; none may be missing.
    """
    may_repeat = not keys.TASK_EXACTLY_ONCE.read(world.config)
    logs = world.broker.logs(*world.inputs)
    inputs = Counter(record.key or b"" for log in logs for record in log.records)
    outputs: dict[bytes, list[int]] = {}
    state: dict[bytes, int] = {}
    for log in world.broker.logs("out"):
        for item in committed(log):
            outputs.setdefault(item.record.key or b"", []).append(int(item.record.value or b"0"))
    for log in world.broker.logs("counts"):
        for item in committed(log):
            state[item.record.key or b""] = int(item.record.value or b"0")
    for key, sent in outputs.items():
        counts = list(dict.fromkeys(sent)) if may_repeat else sent
        if counts != list(range(1, len(counts) + 1)):
            yield f"the counts of {key!r} are {counts}: something was lost or applied twice"
        if len(counts) > inputs[key]:
            yield f"{key!r} was counted {len(counts)} times for {inputs[key]} records"
    last = {key: counts[-1] for key, counts in outputs.items()}
    is_ahead = may_repeat and all(n <= last.get(key, 0) for key, n in state.items())
    if state != last and not is_ahead:
        yield f"the changelogs say {state}, the outputs {last}"


def counted(world: World) -> int:
    """How many records of the input have been counted."""
    return sum(1 for log in world.broker.logs("out") for _ in committed(log))


def checkpoints(world: World) -> list[Committed]:
    """All committed checkpoints."""
    return list(committed(world.broker.partition((CHECKPOINTS, 0))))
