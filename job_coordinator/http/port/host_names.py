"""Whether a request asks for this server, by the header ``Host``.

PURE. A page of another server can have its own name resolved to this server's address, and then
read it as its own (DNS rebinding). Such a request has the page's name. An address is no name, and
needs none: no page can have one that is not its own.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+(%[^\]]*)?\]|[a-z0-9_.-]+)(:\d{0,5})?", re.ASCII)
_LOCAL: Final = "localhost"


def names_of(machine: Iterable[str]) -> frozenset[str]:
    """Return names in the form that ``is_own`` compares; of each long one its first part too."""
    found = {name.lower().rstrip(".") for name in machine}
    return frozenset(found | {name.partition(".")[0] for name in found if not _is_address(name)})


def is_own(host: str, *names: Iterable[str]) -> bool:
    """Return whether the header names an address, this machine as itself, or one of ``names``."""
    match = _HOST.fullmatch(host.strip().lower())
    if match is None:
        return False
    name = match["name"]
    if _is_address(name.strip("[]")):
        return True
    name = name.rstrip(".")
    return name == _LOCAL or any(name in known for known in names)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True
