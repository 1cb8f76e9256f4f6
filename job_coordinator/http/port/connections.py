"""Limits what one address can take from a port: connections, and guesses of a token.

PURE. A *stranger* is a connection that has not shown the job's token. No stranger takes a file that
a launcher needs. Strangers share the room that other connections leave; those of one address have
an eighth of it. A new stranger takes the place of the one whose last request is the oldest. A
connection with the job's token is not closed for another one.

After ten wrong tokens of an address within a minute, the port ignores its tokens until the minute
is over, except the job's own. An IPv6 address counts as its network of 64 bits, which one machine
may have to itself.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Iterable
from itertools import takewhile
from typing import Final, Generic, TypeVar

FIRST_MS: Final = 15_000
"""Time in which a new connection has to send its first request."""

_FILES_OF_OTHERS: Final = 8
"""Share (one eighth) of its files that a process keeps for other uses than connections."""

_SHARE_OF_ONE: Final = 8
"""Share (one eighth) of the room that strangers of one address have."""

_LEAST: Final = 16
"""Least share (one sixteenth) of the room that strangers have, whatever others need."""

LIMIT: Final = 10
"""Wrong tokens that are accepted from an address within ``WINDOW_MS``."""
WINDOW_MS: Final = 60_000
MAX_ADDRESSES: Final = 1_024
"""Beyond this number the address that has been silent for longest is forgotten."""

_NETWORK: Final = 64
"""Bits of an IPv6 address that name its network."""

K = TypeVar("K")


class Connections(Generic[K]):
    """Connections by a key of the caller's; times are of one clock that never goes back, in ms.

    ``files``: how many the process may have open.
    """

    def __init__(self, files: int) -> None:
        # A closed connection frees its file a moment later: these few come from the other share.
        self._room = files - files // _FILES_OF_OTHERS
        self._of_one = max(1, self._room // _SHARE_OF_ONE)
        self._strangers: OrderedDict[K, str] = OrderedDict()
        """{key: its network}, in the order of their last requests."""
        self._by_network: dict[str, OrderedDict[K, None]] = {}
        self._silent: OrderedDict[K, int] = OrderedDict()
        """{key: when it came} of those without a request, in that order."""
        self._known: set[K] = set()

    def came(self, key: K, address: str, now_ms: int) -> K | None:
        """Add a stranger; forget and return the one that must be closed for it, if any."""
        network = network_of(address)
        same = self._by_network.get(network, ())
        most = max(self._room // _LEAST, self._room - len(self._known))
        closed = None
        if len(same) >= self._of_one:
            closed = self._first_of(same)
        elif len(self._strangers) >= most:
            closed = self._first_of(self._strangers)
        self._strangers[key] = network
        self._by_network.setdefault(network, OrderedDict())[key] = None
        self._silent[key] = now_ms
        return closed

    def asked(self, key: K) -> None:
        """Note that a whole request has come by this connection."""
        self._silent.pop(key, None)
        network = self._strangers.get(key)
        if network is not None:
            self._strangers.move_to_end(key)
            self._by_network[network].move_to_end(key)

    def is_known(self, key: K) -> None:
        """Note that this connection has shown the job's token."""
        if key in self._strangers:
            self.left(key)
            self._known.add(key)

    def left(self, key: K) -> None:
        """Forget this connection."""
        self._silent.pop(key, None)
        self._known.discard(key)
        network = self._strangers.pop(key, None)
        if network is not None:
            same = self._by_network[network]
            del same[key]
            if not same:
                del self._by_network[network]

    def oldest(self) -> K | None:
        """Forget and return the stranger whose last request is the oldest."""
        return self._first_of(self._strangers)

    def late(self, now_ms: int) -> list[K]:
        """Forget and return those without a request in ``FIRST_MS``."""
        found = list(takewhile(lambda key: now_ms - self._silent[key] >= FIRST_MS, self._silent))
        for key in found:
            self.left(key)
        return found

    def _first_of(self, keys: Iterable[K]) -> K | None:
        first = next(iter(keys), None)
        if first is not None:
            self.left(first)
        return first


class WrongTokens:
    """Counts the wrong tokens of each address; times are as in ``Connections``."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()
        """{network: (wrong tokens in its window, begin of the window)}"""

    def __len__(self) -> int:
        return len(self._seen)

    def wait_ms(self, address: str, now_ms: int) -> int:
        """Return for how long the port ignores the address's tokens, except the job's own; or 0."""
        count, since_ms = self._seen.get(network_of(address), (0, now_ms))
        left_ms = since_ms + WINDOW_MS - now_ms
        return left_ms if count >= LIMIT and left_ms > 0 else 0

    def shown(self, address: str, now_ms: int) -> bool:
        """Count a wrong token of the address; return whether this one reaches the limit."""
        network = network_of(address)
        count, since_ms = self._seen.pop(network, (0, now_ms))
        if now_ms - since_ms >= WINDOW_MS:
            count, since_ms = 0, now_ms
        self._seen[network] = (count + 1, since_ms)
        while len(self._seen) > MAX_ADDRESSES:
            self._seen.popitem(last=False)
        return count + 1 == LIMIT


def network_of(address: str) -> str:
    """Return the network of an IPv6 address; any other text stays."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _NETWORK), strict=False))
