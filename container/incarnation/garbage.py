"""How often Python looks for garbage in a container."""

from __future__ import annotations

import gc

_YOUNG_OBJECTS = 100_000


def spare_collections() -> None:
    """What stands now lives as long as the container: no collection looks at it again.

    And what is young is mostly the micro-batch at work, in which a search finds nothing: it comes
    less often. It may never be switched off (``SparkPipeline``).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
