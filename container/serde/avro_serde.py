"""The serde avro: values by one schema, in Avro's binary form, without header or schema id.

The library is an extra of homeport's and imported only here: a job without Avro needs none.
"""

from __future__ import annotations

import io
import json
from typing import Any

from homeport.config.errors import ConfigError, WireError
from homeport.config.settings.serde_names import AVRO
from homeport.container.serde.serdes import Serde


def avro_serde(key: str, schema: str) -> Serde:
    """The serde of ``schema``, which is JSON.

    Raises:
        ConfigError: there is no library for Avro, or it is no schema; the line names ``key``.
    """
    try:
        import fastavro  # noqa: PLC0415 - an extra: only for a job with avro
    except ImportError:
        raise ConfigError(
            key,
            AVRO,
            "fastavro is not installed",
            "install homeport[avro] for the interpreter of the job's containers",
        ) from None
    try:
        parsed = fastavro.parse_schema(json.loads(schema))
    except Exception as error:  # noqa: BLE001 - whatever the library has against it
        said = " ".join(str(error).split())
        raise ConfigError(
            key, schema, f"it is no Avro schema ({type(error).__name__}: {said})", "correct it"
        ) from None

    def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - a user's value
        data = io.BytesIO()
        try:
            fastavro.schemaless_writer(data, parsed, value, strict=True)
        except Exception as error:  # noqa: BLE001 - whatever the library has against it
            said = " ".join(str(error).split())
            raise TypeError(f"the schema of the serde 'avro' cannot carry it: {said}") from None
        return data.getvalue()

    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        stream = io.BytesIO(data)
        try:
            value = fastavro.schemaless_reader(stream, parsed, None)
        except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
            said = " ".join(str(error).split())
            raise WireError(f"not of the serde 'avro': {data[:80]!r} ({said})") from None
        if stream.tell() != len(data):
            raise WireError(f"not of the serde 'avro': bytes are left over of {data[:80]!r}")
        return value

    return Serde(AVRO, to_bytes, from_bytes)
