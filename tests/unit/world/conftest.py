"""The scene of a test, in a world of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.world.scene import Scene
from tests.unit.world.world import World


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
