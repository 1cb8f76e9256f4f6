"""The rule by which a container's memory is divided."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from homeport.config.settings.memory_rule import (
    SPARE_MB,
    WAITING_JVM_MB,
    MemoryShares,
    divide,
    fits_warm_spare,
    has_room_for_spare,
    least_with_warm_spare,
    must_spare_go,
    needed_for_spare,
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
def test_with_a_pipeline_the_heap_gets_the_rest(container_mb: int, shares: MemoryShares) -> None:
    """The table of the README."""
    assert divide(container_mb, has_pipeline=True) == shares


def test_without_a_pipeline_python_gets_the_rest() -> None:
    """No JVM, no share for one."""
    assert divide(1024, has_pipeline=False) == MemoryShares(32, 128, 0, 0, 864)


@pytest.mark.parametrize("container_mb", [1, 512, 1024, 1280, 5000, 65536])
@pytest.mark.parametrize("heap_mb", [None, 600])
@pytest.mark.parametrize("has_warm_spare", [True, False])
@pytest.mark.parametrize("has_pipeline", [True, False])
def test_the_shares_add_up(
    container_mb: int, heap_mb: int | None, *, has_warm_spare: bool, has_pipeline: bool
) -> None:
    """To the container's memory, whatever was configured."""
    shares = divide(
        container_mb, has_pipeline=has_pipeline, heap_mb=heap_mb, has_warm_spare=has_warm_spare
    )
    assert sum(astuple(shares)) == container_mb


def test_a_warm_spare_beside_an_active_container_has_a_share() -> None:
    """As large a JVM once more, and its Python; none without a pipeline, whatever is configured."""
    shares = divide(4096, has_pipeline=True, has_warm_spare=True)
    assert shares == MemoryShares(32, 512, 928, 256, 1024, 928 + 256 + 160)
    assert divide(4096, has_pipeline=False, has_warm_spare=True) == divide(4096, has_pipeline=False)


@pytest.mark.parametrize("heap_mb", [None, 512, 600, 2000])
def test_the_least_that_holds_a_warm_spare_leaves_python_its_quarter(heap_mb: int | None) -> None:
    """64 MB less do not."""
    least_mb = least_with_warm_spare(heap_mb)
    for container_mb, is_tight in ((least_mb, False), (least_mb - 64, True)):
        shares = divide(container_mb, has_pipeline=True, heap_mb=heap_mb, has_warm_spare=True)
        assert shares.is_tight(container_mb) is is_tight
    assert least_with_warm_spare(None) == 2816


def test_a_warm_spare_is_started_where_its_whole_share_is_free() -> None:
    """It needs no more than that, as the others have their own; and it goes as any other does."""
    assert has_room_for_spare(2816, 2816 - 928, 928)
    assert not has_room_for_spare(2816, 2816 - 927, 928)


def test_memory_is_tight_where_python_has_less_than_a_quarter() -> None:
    """Small containers with a pipeline, or a heap that was configured too large."""
    assert divide(1024, has_pipeline=True).is_tight(1024)
    assert not divide(1280, has_pipeline=True).is_tight(1280)
    assert divide(1536, has_pipeline=True, heap_mb=1000).is_tight(1536)
    assert not divide(256, has_pipeline=False).is_tight(256)


@pytest.mark.parametrize("container_mb", [256, 512, 1536, 8192])
def test_a_spare_uses_the_memory_that_the_others_leave(container_mb: int) -> None:
    """One that has just been started stays: it goes only where others have grown since."""
    most_mb = container_mb - container_mb // 8 - SPARE_MB
    assert has_room_for_spare(container_mb, most_mb)
    assert not has_room_for_spare(container_mb, most_mb + 1)
    assert not must_spare_go(container_mb, most_mb + SPARE_MB)
    assert not must_spare_go(container_mb, container_mb - container_mb // 16)
    assert must_spare_go(container_mb, container_mb - container_mb // 16 + 1)


@pytest.mark.parametrize("container_mb", [1280, 1536, 8192])
def test_before_a_restart_a_jvm_is_started_in_what_the_others_leave(container_mb: int) -> None:
    """It stays, too, unless others grow."""
    needed_mb = needed_for_spare(container_mb, has_jvm=True)
    most_mb = container_mb - needed_mb
    assert has_room_for_spare(container_mb, most_mb, has_jvm=True)
    assert not has_room_for_spare(container_mb, most_mb + 1, has_jvm=True)
    assert not must_spare_go(container_mb, most_mb + SPARE_MB + WAITING_JVM_MB)


def test_from_1280_mb_on_a_standby_and_a_spark_fit_beside_each_other() -> None:
    """As long as the heap is that of the rule; Python's share must hold two processes."""
    assert fits_warm_spare(divide(1280, has_pipeline=True))
    assert not fits_warm_spare(divide(1024, has_pipeline=True))
    assert not fits_warm_spare(divide(1536, has_pipeline=True, heap_mb=800))
