"""The text of ``ADJUNCT-META``, which says whose store a directory holds.

PURE. The file has the form of OFFSET: a checksum and this text.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import msgspec

from homeport.config.errors import WireError
from homeport.container.adjunct.recovery import AdjunctMeta

META_FILE = "ADJUNCT-META"
_SHOWN = 200


def meta_text(meta: AdjunctMeta) -> str:
    """The text of ``meta``."""
    fields = asdict(meta)
    if meta.forms is None:
        del fields["forms"]
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def parse_meta(text: str) -> AdjunctMeta:
    """Return what ``text`` holds; WireError where it is not the text of such a file."""
    try:
        return msgspec.json.decode(text, type=AdjunctMeta)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise WireError(f"it holds {text[:_SHOWN]!r}, which says no owner of a store") from None
