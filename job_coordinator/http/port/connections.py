"""Limits what one address can take from a port: connections, and guesses of a token.

PURE. A *stranger* is a connection that has not shown the job's token. Whatever a stranger does, it
takes no file that a launcher needs: strangers share the room that the others leave, those of one
address an eighth of it, and the one that has asked nothing for longest makes place for a new one.
A connection with the job's token is not closed for another one.

After ten wrong tokens of an address within a minute, none of its tokens is looked at until the
minute is over, but the job's own. An address of IPv6 counts as its network of 64 bits, which one
machine may have to itself.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Iterable
from itertools import takewhile
from typing import Final, Generic, TypeVar

FIRST_MS: Final = 15_000
"""Within it a new connection has to have asked something."""

_FILES_OF_OTHERS: Final = 8
"""The share of its files that a process keeps for what is no connection of its port."""

_SHARE_OF_ONE: Final = 8
"""Of the room, what strangers of one address have."""

_LEAST: Final = 16
"""Of the room, what strangers have however many others there are."""

LIMIT: Final = 10
"""So many wrong tokens of an address within ``WINDOW_MS`` are looked at."""
WINDOW_MS: Final = 60_000
MAX_ADDRESSES: Final = 1_024
"""Beyond it the address is forgotten that has been silent for longest."""

_NETWORK: Final = 64
"""Bits of an IPv6 address that are one network."""

K = TypeVar("K")


class Connections(Generic[K]):
    """Connections by a key of the caller's; times are of one clock that never goes back, in ms.

    Args:
        files: how many the process may have open.
    """

    def __init__(self, files: int) -> None:
        # What is closed lets its file go a moment later: these few come out of the others' share.
        self._room = files - files // _FILES_OF_OTHERS
        self._of_one = max(1, self._room // _SHARE_OF_ONE)
        self._strangers: OrderedDict[K, str] = OrderedDict()
        """{key: its network}, the one that has asked nothing for longest first."""
        self._by_network: dict[str, OrderedDict[K, None]] = {}
        self._silent: OrderedDict[K, int] = OrderedDict()
        """{key: when it came} of those that have asked nothing at all, by that time."""
        self._known: set[K] = set()

    def came(self, key: K, address: str, now_ms: int) -> K | None:
        """Add a stranger; return the one that is to be closed for it, which is forgotten."""
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
        """Note that a whole request has come by it."""
        self._silent.pop(key, None)
        network = self._strangers.get(key)
        if network is not None:
            self._strangers.move_to_end(key)
            self._by_network[network].move_to_end(key)

    def is_known(self, key: K) -> None:
        """Note that it has shown the job's token."""
        if key in self._strangers:
            self.left(key)
            self._known.add(key)

    def left(self, key: K) -> None:
        """Forget it."""
        self._silent.pop(key, None)
        self._known.discard(key)
        network = self._strangers.pop(key, None)
        if network is not None:
            same = self._by_network[network]
            del same[key]
            if not same:
                del self._by_network[network]

    def oldest(self) -> K | None:
        """Return the stranger that has asked nothing for longest, which is forgotten."""
        return self._first_of(self._strangers)

    def late(self, now_ms: int) -> list[K]:
        """Return those that had time enough to ask something; they are forgotten."""
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
    """Counts wrong tokens of each address. Times are of one clock that never goes back, in ms."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()
        """{network: how many within its window, when that began}"""

    def __len__(self) -> int:
        return len(self._seen)

    def wait_ms(self, address: str, now_ms: int) -> int:
        """Return for how long that address's tokens are ignored, but the job's own; or 0."""
        count, since_ms = self._seen.get(network_of(address), (0, now_ms))
        left_ms = since_ms + WINDOW_MS - now_ms
        return left_ms if count >= LIMIT and left_ms > 0 else 0

    def shown(self, address: str, now_ms: int) -> bool:
        """Count a wrong token from there; return whether it is the one that reaches the limit."""
        network = network_of(address)
        count, since_ms = self._seen.pop(network, (0, now_ms))
        if now_ms - since_ms >= WINDOW_MS:
            count, since_ms = 0, now_ms
        self._seen[network] = (count + 1, since_ms)
        while len(self._seen) > MAX_ADDRESSES:
            self._seen.popitem(last=False)
        return count + 1 == LIMIT


def network_of(address: str) -> str:
    """Return what counts as one address; text that is none stays."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _NETWORK), strict=False))
