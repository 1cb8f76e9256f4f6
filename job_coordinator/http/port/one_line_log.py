"""aiohttp's log of what is no HTTP, or beyond its limits. SHELL."""

from __future__ import annotations

import logging
import re
from collections.abc import MutableMapping
from typing import Any, Final

from homeport.job_coordinator.clocks import boot_ms

_LINES: Final = 60
_MINUTE_MS: Final = 60_000
_QUOTE: Final = re.compile(r"""\bb?['"]""")
"""How aiohttp begins to quote what was sent; the names of headers that it quotes go too."""


class OneLineLog(logging.LoggerAdapter[logging.Logger]):
    """aiohttp's log of what is no HTTP, or beyond its limits: a line each instead of a traceback.

    Any program that reaches the port can send such; the log must stay readable. So a line has none
    of what was sent, which may be a token with one character too many, and there are at most
    ``_LINES`` a minute.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger)
        self._since_ms: int | None = None
        self._lines = 0

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - the base's signature
        """Logged, unless there were too many within the minute; the last one says so."""
        now_ms = boot_ms()
        if self._since_ms is None or now_ms - self._since_ms >= _MINUTE_MS:
            self._since_ms, self._lines = now_ms, 0
        self._lines += 1
        if self._lines <= _LINES:
            super().log(level, msg, *args, **kwargs)
        if self._lines == _LINES:
            self.logger.warning("further requests that are no HTTP are not logged for a minute")

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """The message with what the exception says, if there is one."""
        error = kwargs.pop("exc_info", None)
        # A message is formatted with its arguments later.
        reason = _QUOTE.split(" ".join(str(error or "").split()), maxsplit=1)[0]
        reason = reason.rstrip(" :").replace("%", "%%")
        return f"{msg}: {reason}" if reason else str(msg), kwargs
