"""How sizes, ages, counts and tables are printed."""

from collections.abc import Container, Iterator, Sequence

_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_STEP = 1024
_AGES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def size(count: int) -> str:
    """Return ``count`` bytes in the largest unit that they fill."""
    value, unit = float(count), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def age(milliseconds: int) -> str:
    """Return a time span in the largest unit that it fills."""
    for unit_ms, unit in _AGES:
        if milliseconds >= unit_ms:
            return f"{milliseconds // unit_ms} {unit}"
    return "0 s"


def number(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: ``1 file``, ``2 files``."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def table(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> Iterator[str]:
    """Yield ``rows`` with columns as wide as what is in them; those of ``right`` to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
