"""ManualClock: the clocks of the process under test, which stand until a test moves them."""

from homeport.container.progress.clock_reading import ClockReading

_NS_PER_MS = 1_000_000
_READING_NS = 100


class ManualClock:
    """Starts at ``start_ms`` since 1970, and only ``move`` moves it on.

    Each reading of ``seconds`` adds a tenth of a microsecond: an event is due once the clock is at
    its time, whatever the rounding of binary fractions.
    """

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms
        self._moved_ms = 0
        self._read_ns = 0

    @property
    def now_ms(self) -> int:
        """Return the milliseconds since 1970."""
        return self._start_ms + self._moved_ms

    def seconds(self) -> float:
        """Return seconds that never go back."""
        self._read_ns += _READING_NS
        return (self._moved_ms * _NS_PER_MS + self._read_ns) / 1e9

    def reading(self) -> ClockReading:
        """Return what the machine's clocks show."""
        return ClockReading(self.now_ms, "memory", self._moved_ms)

    def move(self, ms: int) -> None:
        """Move the clock on by ``ms``."""
        self._moved_ms += ms
