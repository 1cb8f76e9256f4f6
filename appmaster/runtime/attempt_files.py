"""What one driver leaves in the AM's folder for the next of the same attempt.

The files live as long as the AM's container, which is as long as Skein's containers live: a new
attempt starts without them, as it must.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from homeport.config.errors import HomeportError
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import RequestId
from homeport.job_coordinator.model.job_model import JobModel

_LEDGER_NAME = "requests"
_MODEL_NAME = "job-model.json"
_BEGAN_NAME = "began"


class RequestLedger:
    """Which Skein container belongs to which request: one line each, appended.

    A Skein container that is not in it was asked for by a driver that died before it could write
    the line; no permit was ever given for it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LEDGER_NAME

    def read(self) -> Mapping[str, RequestId]:
        """{Skein id: request}; a last line that is not whole is left out."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        whole, _, _ = text.rpartition("\n")
        pairs = (line.split() for line in whole.splitlines())
        return {pair[0]: RequestId(int(pair[1])) for pair in pairs if len(pair) == 2}  # noqa: PLR2004

    def add(self, skein_id: str, request_id: RequestId) -> None:
        """The next driver will know."""
        with self._path.open("ab") as file:
            file.write(f"{skein_id} {request_id}\n".encode())


def save_model(folder: Path, model: JobModel) -> None:
    """The attempt's JobModel, secrets included, is in a private file."""
    new = folder / f"{_MODEL_NAME}.new"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(encode_job_model(model, mask_secrets=False))
    new.replace(folder / _MODEL_NAME)


def load_model(folder: Path) -> JobModel | None:
    """The attempt's JobModel; None where no driver has come so far."""
    try:
        return decode_job_model((folder / _MODEL_NAME).read_bytes())
    except (OSError, HomeportError):
        return None


def attempt_began_ms(folder: Path, now_ms: int) -> int:
    """When the first driver of the attempt asked this, by its clock; ``now_ms`` if none did.

    Rank and predecessors are settled by then, as every driver does that first.
    """
    path = folder / _BEGAN_NAME
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        path.write_text(str(now_ms), encoding="ascii")
        return now_ms
