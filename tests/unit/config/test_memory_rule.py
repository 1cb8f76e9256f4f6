"""The rule by which a container's memory is divided."""

from __future__ import annotations

import pytest

from homeport.config.memory_rule import (
    SPARE_MB,
    MemoryShares,
    divide,
    fits_warm_spare,
    has_room_for_spare,
    must_spare_go,
)


@pytest.mark.parametrize(
    ("container_mb", "shares"),
    [
        (1024, MemoryShares(32, 128, 512, 256, 96)),
        (1280, MemoryShares(32, 160, 512, 256, 320)),
        (1536, MemoryShares(32, 192, 672, 256, 384)),
        (4096, MemoryShares(32, 512, 2272, 256, 1024)),
    ],
)
def test_with_a_pipeline_the_heap_gets_what_the_others_leave(
    container_mb: int, shares: MemoryShares
) -> None:
    """The table of the README."""
    assert divide(container_mb, has_pipeline=True) == shares


def test_without_a_pipeline_python_gets_what_is_left() -> None:
    """No JVM, no share for one."""
    assert divide(1024, has_pipeline=False) == MemoryShares(32, 128, 0, 0, 864)


@pytest.mark.parametrize("container_mb", [1, 512, 1024, 1280, 5000, 65536])
@pytest.mark.parametrize("heap_mb", [None, 600])
def test_the_shares_add_up(container_mb: int, heap_mb: int | None) -> None:
    """To the container's memory, whatever was configured."""
    shares = divide(container_mb, has_pipeline=True, heap_mb=heap_mb)
    parts = (shares.launcher_mb, shares.rocksdb_mb, shares.heap_mb, shares.jvm_beside_heap_mb)
    assert sum(parts) + shares.python_mb == container_mb


def test_it_is_tight_where_python_has_less_than_a_quarter() -> None:
    """Small containers with a pipeline, or a heap that was configured too large."""
    assert divide(1024, has_pipeline=True).is_tight(1024)
    assert not divide(1280, has_pipeline=True).is_tight(1280)
    assert divide(1536, has_pipeline=True, heap_mb=1000).is_tight(1536)
    assert not divide(256, has_pipeline=False).is_tight(256)


@pytest.mark.parametrize("container_mb", [256, 512, 1536, 8192])
def test_a_spare_lives_of_what_the_others_leave(container_mb: int) -> None:
    """One that has just been started stays: it goes only where others have grown since."""
    most_mb = container_mb - container_mb // 8 - SPARE_MB
    assert has_room_for_spare(container_mb, most_mb)
    assert not has_room_for_spare(container_mb, most_mb + 1)
    assert not must_spare_go(container_mb, most_mb + SPARE_MB)
    assert not must_spare_go(container_mb, container_mb - container_mb // 16)
    assert must_spare_go(container_mb, container_mb - container_mb // 16 + 1)


def test_from_1280_mb_on_a_standby_and_a_spark_fit_beside_each_other() -> None:
    """As long as the heap is that of the rule; Python's share must hold two processes."""
    assert fits_warm_spare(divide(1280, has_pipeline=True))
    assert not fits_warm_spare(divide(1024, has_pipeline=True))
    assert not fits_warm_spare(divide(1536, has_pipeline=True, heap_mb=800))
