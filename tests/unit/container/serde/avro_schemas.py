"""Schemas of Avro, and the serdes of them, for the tests of this folder."""

from __future__ import annotations

import json
from typing import Any

from homeport.container.serde.avro_serde import avro_serde
from homeport.container.serde.serdes import Serde


def record(name: str, /, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A record with fields of these types."""
    parts = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": parts}


def array(items: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """An array of such items."""
    return {"type": "array", "items": items}


def logical(name: str, kind: str = "long", /, **more: object) -> dict[str, object]:
    """A logical type on the type ``kind``."""
    return {"type": kind, "logicalType": name, **more}


def serde_of(schema: Any) -> Serde:  # noqa: ANN401 - JSON
    """The serde of the schema."""
    return avro_serde("key", json.dumps(schema))
