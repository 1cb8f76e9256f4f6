"""The scene of a test, in a world of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.unit.world.scene import Scene
from tests.unit.world.world import World


@pytest.fixture(autouse=True)
def _on_one_core() -> Iterator[None]:
    """The threads of a world take turns: a turn on another core costs a fifth of the time more."""
    cores = os.sched_getaffinity(0)
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    os.sched_setaffinity(0, {sorted(cores)[worker % len(cores)]})
    yield
    os.sched_setaffinity(0, cores)


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A job as the marker ``world`` describes it, by what ``World`` takes; judged after the test.

    With ``is_judged=False`` it is not: the judges do not count inputs that grow, or began empty.
    """
    marker = request.node.get_closest_marker("world")
    args, fields = ((), {}) if marker is None else (marker.args, {**marker.kwargs})
    is_judged = fields.pop("is_judged", True)
    with World(*args, **fields) as world:
        scene = Scene(world)
        yield scene
        if is_judged:
            scene.judge()
