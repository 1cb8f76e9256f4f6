"""Adjunct stores as a configuration would give them, for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace

from homeport.config.settings.adjunct_section import AdjunctStore
from homeport.config.system_stream import SystemStream

DAY_MS = 86_400_000
PLANES = AdjunctStore(
    name="planes",
    stream=SystemStream("kafka", "planes"),
    input_key="stores.planes.adstore.input",
    is_broadcast=False,
    is_bootstrap=False,
    is_kept=True,
    extractor=None,
    validity_ms=DAY_MS,
    markers=None,
    minimum_share_percent=0,
    late_ms=DAY_MS,
)


def adjunct(name: str, *, is_broadcast: bool) -> AdjunctStore:
    """The store ``name`` of the stream ``kafka.<name>``."""
    stream = SystemStream("kafka", name)
    return replace(PLANES, name=name, stream=stream, is_broadcast=is_broadcast)
