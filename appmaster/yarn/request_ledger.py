"""Which Skein container belongs to which request, kept in the AM's folder.

The file lives as long as the AM's container, which is as long as Skein's containers live.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from homeport.job_coordinator.model.ids import RequestId

_LEDGER_NAME = "requests"


class RequestLedger:
    """Which Skein container belongs to which request: one line each, appended.

    A driver that died before it could write the line requested a Skein container that is not in it;
    no permit was ever given for it.
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
        return {pair[0]: RequestId(int(pair[1])) for pair in pairs if len(pair) == 2}  # noqa: PLR2004 - a pair

    def add(self, skein_id: str, request_id: RequestId) -> None:
        """The next driver will know."""
        with self._path.open("ab") as file:
            file.write(f"{skein_id} {request_id}\n".encode())
