"""How a container's memory is divided: the one rule, for heap, RocksDB and Python alike.

PURE. Of the MB that YARN grants and holds a container's processes to (all of them together),

==================  ==========================================================================
launcher            32, with the shells that YARN starts it by
RocksDB             an eighth: one block cache and one write-buffer budget for all stores
JVM's heap          with a pipeline only: what the others leave, at least 512, which Spark needs
JVM beside it       with a pipeline only: 256
warm spare          where ``job.container.prewarm`` asks for one: a heap and what is beside it once
                    more, and 160 for its Python
Python              a quarter; without a pipeline, all that is left
==================  ==========================================================================

The rule adds up from 1280 MB on with a pipeline, from 2816 with a warm spare, which is refused
below; else Python gets what is left. Measured, flights in containers of 1536 MB with a heap of 768:
launcher and shells 27, Python with RocksDB 353, the JVM 694 at its peak, of which about 230 beside
the heap. ``task.spark.driver.memory.mb`` replaces the heap, at Python's cost.

A *spare*, a process with its imports done that waits beside a container for the next start, has no
share: it lives of what the others leave, and gives way to them. It is started where they leave its
``SPARE_MB`` and an eighth more, and ended where less than half of that eighth is left. Measured:
136 MB, and 143 with what a pipeline imports.

A *warm* spare holds the pipeline's JVM too. Beside a standby, which has none, heap and what is
beside it have their shares already; Python's must hold two processes, ``STANDBY_MB`` and
``WARM_SPARE_MB``. From 1280 MB on it does, unless the heap was made larger. Beside an active
container, whose JVM uses these, it has a share of its own: as large as it may ever be, since the
heap that waits is the one that the next incarnation will work with. It is started where the others
leave its whole share.

Before a restart that an upgrade is about to give, a spare of a job with a pipeline gets warm too,
without a share, where the others leave ``WAITING_JVM_MB`` more. Its heap stays almost empty until
the container has ended, and made room. Measured: the JVM 338, its Python 190.
"""

from dataclasses import dataclass

LAUNCHER_MB = 32
JVM_BESIDE_HEAP_MB = 256
SMALLEST_HEAP_MB = 512
SPARE_MB = 144
STANDBY_MB = 128
WARM_SPARE_MB = 160
WAITING_JVM_MB = 384
STANDBY_ROCKSDB_PART = 4
"""Of RocksDB's share, where active tasks and standbys have one process."""
_STEP_MB = 64
_RESERVE_PART = 8
_ROCKSDB_PART = 8
_PYTHON_PART = 4


@dataclass(frozen=True)
class MemoryShares:
    """MB of one container. ``heap_mb`` and ``jvm_beside_heap_mb`` are 0 without a pipeline.

    ``warm_spare_mb``: for a spare with a JVM beside an active container; 0 without a spare.
    The shares add up to the container's memory; ``python_mb`` may be too small to live by, or
    negative.
    """

    launcher_mb: int
    rocksdb_mb: int
    heap_mb: int
    jvm_beside_heap_mb: int
    python_mb: int
    warm_spare_mb: int = 0

    def is_tight(self, container_mb: int) -> bool:
        """Return whether Python has less than the rule wants for it."""
        return self.python_mb < container_mb // _PYTHON_PART


def divide(
    container_mb: int,
    *,
    has_pipeline: bool,
    heap_mb: int | None = None,
    has_warm_spare: bool = False,
) -> MemoryShares:
    """Return the shares of a container of ``container_mb``; ``heap_mb`` None: by the rule.

    ``has_warm_spare``: whether active containers have one. Standbys are divided
    alike, so that a JVM that waits beside one serves its active container.
    """
    rocksdb = container_mb // _ROCKSDB_PART
    if not has_pipeline:
        return MemoryShares(LAUNCHER_MB, rocksdb, 0, 0, container_mb - LAUNCHER_MB - rocksdb)
    jvms = 2 if has_warm_spare else 1
    spare_python = WARM_SPARE_MB if has_warm_spare else 0
    taken = LAUNCHER_MB + rocksdb + jvms * JVM_BESIDE_HEAP_MB + spare_python
    by_rule = max(SMALLEST_HEAP_MB, (container_mb - taken - container_mb // _PYTHON_PART) // jvms)
    heap = by_rule if heap_mb is None else heap_mb
    spare = heap + JVM_BESIDE_HEAP_MB + spare_python if has_warm_spare else 0
    python = container_mb - taken - jvms * heap
    return MemoryShares(LAUNCHER_MB, rocksdb, heap, JVM_BESIDE_HEAP_MB, python, spare)


def least_with_warm_spare(heap_mb: int | None) -> int:
    """Return the MB of a container, in steps of 64, that hold an active one and a warm spare.

    ``heap_mb`` None: the smallest heap that the rule gives.
    """
    heap = SMALLEST_HEAP_MB if heap_mb is None else heap_mb
    fixed = LAUNCHER_MB + WARM_SPARE_MB + 2 * (heap + JVM_BESIDE_HEAP_MB)
    # What RocksDB and Python leave of it, 1 - 1/8 - 1/4, must hold the rest.
    left_of_8 = 8 - 8 // _ROCKSDB_PART - 8 // _PYTHON_PART
    return -(-fixed * 8 // (left_of_8 * _STEP_MB)) * _STEP_MB


def needed_for_spare(container_mb: int, share_mb: int = 0, *, has_jvm: bool = False) -> int:
    """Return the MB that must be free where a spare is started.

    ``share_mb``: what is set apart for it; 0: nothing is, and it leaves the others some room.
    ``has_jvm``: whether it starts a JVM that has no share; it is there for seconds.
    """
    if has_jvm:
        return SPARE_MB + WAITING_JVM_MB + container_mb // (2 * _RESERVE_PART)
    return share_mb or SPARE_MB + container_mb // _RESERVE_PART


def has_room_for_spare(
    container_mb: int, used_mb: int, share_mb: int = 0, *, has_jvm: bool = False
) -> bool:
    """Return whether a spare may be started beside processes that use so much together.

    ``share_mb``, ``has_jvm``: as of ``needed_for_spare``.
    """
    return used_mb + needed_for_spare(container_mb, share_mb, has_jvm=has_jvm) <= container_mb


def must_spare_go(container_mb: int, used_mb: int) -> bool:
    """Return whether a spare is too much; ``used_mb`` is its own memory and that of all others."""
    return used_mb + container_mb // (2 * _RESERVE_PART) > container_mb


def fits_warm_spare(shares: MemoryShares) -> bool:
    """Return whether a spare with a JVM and a standby fit into one container together."""
    return shares.python_mb >= STANDBY_MB + WARM_SPARE_MB
