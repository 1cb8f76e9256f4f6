"""Times and spans as people read them. PURE."""

from datetime import UTC, datetime
from typing import Final

_MS_PER_S: Final = 1000
_DAY_MS: Final = 86_400_000
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_SHOWN: Final = 2


def clock(at_ms: int) -> str:
    """Return a time in ms since 1970 as date and time in UTC, to the millisecond."""
    return datetime.fromtimestamp(at_ms / _MS_PER_S, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def moment(at_ms: int) -> str:
    """Return a time in ms since 1970 as date and time in UTC, to the second."""
    return clock(at_ms).partition(".")[0]


def since(at_ms: int, now_ms: int) -> str:
    """Return the time in UTC; with its date if that is a day ago or more."""
    form = "%H:%M:%S UTC" if now_ms - at_ms < _DAY_MS else "%Y-%m-%d %H:%M UTC"
    return datetime.fromtimestamp(at_ms / _MS_PER_S, UTC).strftime(form)


def span(ms: int) -> str:
    """Return a span in its two largest units, such as ``3m12s``; a negative span is ``0s``."""
    seconds = max(0, ms // _MS_PER_S)
    parts: list[str] = []
    for size, unit in _UNITS:
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append(f"{count}{unit}")
    return "".join(parts[:_SHOWN]) or "0s"
