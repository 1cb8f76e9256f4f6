"""How many wrong tokens an address may show: ten a minute, counted for 1,024 addresses at most.

PURE. An address of IPv6 counts as its network of 64 bits, which one machine may have to itself.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Final

LIMIT: Final = 10
WINDOW_MS: Final = 60_000
MAX_ADDRESSES: Final = 1_024
"""Beyond it the address is forgotten that has been silent for longest."""

_NETWORK: Final = 64


class WrongTokens:
    """Times are of one clock that never goes back, in ms."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()
        """{network: how many within its window, when that began}"""

    def __len__(self) -> int:
        return len(self._seen)

    def wait_ms(self, address: str, now_ms: int) -> int:
        """How long no token of that address but the job's own is looked at; 0: it is now."""
        count, since_ms = self._seen.get(network_of(address), (0, now_ms))
        left_ms = since_ms + WINDOW_MS - now_ms
        return left_ms if count >= LIMIT and left_ms > 0 else 0

    def shown(self, address: str, now_ms: int) -> bool:
        """A wrong token has come from there; whether it is the one that reaches the limit."""
        network = network_of(address)
        count, since_ms = self._seen.pop(network, (0, now_ms))
        if now_ms - since_ms >= WINDOW_MS:
            count, since_ms = 0, now_ms
        self._seen[network] = (count + 1, since_ms)
        while len(self._seen) > MAX_ADDRESSES:
            self._seen.popitem(last=False)
        return count + 1 == LIMIT


def network_of(address: str) -> str:
    """What is counted as one address; text that is none stays."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _NETWORK), strict=False))
