"""The text of ``ADJUNCT-META``, which says whose store a directory holds.

PURE. The file has the form of OFFSET: a checksum and this text.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from homeport.config.errors import WireError
from homeport.container.adjunct.recovery import AdjunctMeta
from homeport.container.progress.clock_reading import NEVER, ClockReading

META_FILE = "ADJUNCT-META"
_SHOWN = 200


def meta_text(meta: AdjunctMeta) -> str:
    """The text of ``meta``."""
    fields = asdict(meta)
    if meta.forms is None:
        del fields["forms"]
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def parse_meta(text: str) -> AdjunctMeta:
    """What ``text`` says; WireError where it is not the text of such a file."""
    try:
        found = json.loads(text)
        names = [found[name] for name in ("stream", "topic_id", "extractor")]
        version, kept_ms = found["version"], found.get("kept_ms")
        at_head = ClockReading(**found["at_head"]) if "at_head" in found else NEVER
        forms = None
        if found.get("forms") is not None:
            key, msg = found["forms"]
            forms = key, msg
        texts = [*names, at_head.boot_id, *(forms or ())]
        numbers = [version, at_head.wall_ms, at_head.boot_ms]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
        if not all(type(n) is int for n in (*numbers, 0 if kept_ms is None else kept_ms)):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WireError(f"it holds {text[:_SHOWN]!r}, which says no owner of a store") from None
    return AdjunctMeta(names[0], names[1], names[2], at_head, kept_ms, version, forms)
