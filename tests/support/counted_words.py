"""A job that counts words (``stream_containers.COUNTER``), and whether it has counted right."""

from __future__ import annotations

from collections import Counter, defaultdict

from histories import require_sound
from stream_containers import Job, Record, Running

from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.job_coordinator.model.outcomes import RestoreKind


def words(count: int, first: int = 0) -> list[Record]:
    """Words that are each of one partition only."""
    return [(i % 2, b"p%d-w%d" % (i % 2, i % 7), b"") for i in range(first, first + count)]


def begun(job: Job, count: int) -> Running:
    """The job's first container, which has counted the first ``count`` words."""
    container = job.start(1)
    job.produce(words(count))
    job.until(lambda: job.processed() == count, container)
    return container


def counts(count: int) -> dict[str, int]:
    """The counts of the first ``count`` words."""
    return dict(Counter((key or b"").decode() for _, key, _ in words(count)))


def has_counted(job: Job, count: int) -> None:
    """Output and changelog hold exactly the first ``count`` words."""
    expected = counts(count)
    assert job.table("out") == {word: str(n).encode() for word, n in expected.items()}
    assert job.table("changelog") == {w: n.to_bytes(8, "big") for w, n in expected.items()}


def _counts_up_to(positions: dict[int, int]) -> dict[str, int]:
    """The counts of the first words of each partition, as many as {partition: number} says."""
    left = Counter(positions)
    right: Counter[str] = Counter()
    for partition, key, _ in words(2 * max(positions.values(), default=0)):
        if left[partition] > 0:
            left[partition] -= 1
            right[(key or b"").decode()] += 1
    return dict(right)


def is_exact(job: Job, total: int, *, outputs_once: bool = True) -> None:
    """Changelog, checkpoints and outputs agree on ``total`` words, none lost, none twice.

    Of each partition they are the first ones.

    Where outputs may come again, each says what the state said at some time, and the last one of
    each word what it says now.
    """
    positions = job.positions()
    assert sum(positions.values()) == total
    right = _counts_up_to(positions)
    assert job.table("changelog") == {w: n.to_bytes(8, "big") for w, n in right.items()}
    stated = defaultdict(list)
    for key, value in job.read(job.topic("out")):
        stated[(key or b"").decode()].append(int(value or b"0"))
    assert {word: max(seen) for word, seen in stated.items()} == right
    for word, seen in stated.items():
        if outputs_once:
            assert seen == sorted(set(seen)), (word, seen)
        assert seen[-1] == right[word], (word, seen)


def has_processed(job: Job, total: int) -> bool:
    """Whether checkpoints say that many records."""
    return job.processed() == total


def local_state(job: Job) -> dict[str, int]:
    """What the two directories hold, once no process has them open."""
    found: dict[str, int] = {}
    for folder in sorted((job.folder / "stores").glob("*/counts/*")):
        store = RocksDbStore(folder, RocksDbMemory(1 << 23, 1))
        found |= {key.decode(): int.from_bytes(value, "big") for key, value in store.scan()}
        store.close()
    return found


def successor(job: Job, epoch: int) -> Running:
    """The next incarnation, started, with what it had at home and no more than a tail to read."""
    started = job.start(epoch, fence=[epoch - 1] if epoch > 1 else [], program="stopped_container")
    report = job.report(started, epoch)
    if epoch > 1:
        kinds = {how.kind for how in report.restored["counts"].values()}
        assert kinds <= {RestoreKind.NONE, RestoreKind.TAIL}, report.restored
    return started


def has_a_sound_history(job: Job) -> str:
    """Return the judge's words on the history, which breaks no rule."""
    return require_sound([job.folder / "stores"])
