"""Resolves names of machines, by a table of names, then by the system's resolver.

On a local cluster only the JVMs know the names nm1, nm2, ..., through a hosts file that is not
/etc/hosts (``HOMEPORT_HOSTS_FILE``). Where the variable is not set, only the system resolves names.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from homeport.config.errors import UnavailableError

HOSTS_FILE_VARIABLE = "HOMEPORT_HOSTS_FILE"


def read_hosts_file(path: Path) -> dict[str, str]:
    """Return {lower-case name: address} from a hosts file; a name's first entry counts."""
    table: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = line.partition("#")[0].split()
        for name in fields[1:]:
            table.setdefault(name.lower(), fields[0])
    return table


class NodeNames:
    """A resolver; it reads the table once, since the file may be gone later."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self._table = dict(table)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> NodeNames:
        """Return the names in the file of ``HOMEPORT_HOSTS_FILE``; none where there is no file."""
        path = environment.get(HOSTS_FILE_VARIABLE, "")
        try:
            return cls(read_hosts_file(Path(path)) if path else {})
        except OSError:
            return cls({})

    def known_address(self, name: str) -> str | None:
        """Return the address of ``name`` in the table; None where the table lacks it."""
        return self._table.get(name.strip().lower())

    def known_name(self, address: str) -> str | None:
        """Return the first name in the table with this address; None: the table lacks it."""
        return next((name for name, known in self._table.items() if known == address), None)

    def address(self, name: str) -> str:
        """Return the IPv4 address of ``name``.

        UnavailableError: neither table nor system knows it.
        """
        known = self.known_address(name)
        if known is not None:
            return known
        try:
            return socket.gethostbyname(name)
        except OSError as e:
            raise UnavailableError(
                f"host name {name!r} has no address ({e}): make it resolvable, or list it in "
                f"the file that {HOSTS_FILE_VARIABLE} names"
            ) from None

    def with_known_address(self, endpoint: str) -> str:
        """Return ``host:port`` with the host's address where the table has it."""
        host, separator, port = endpoint.rpartition(":")
        return f"{self.known_address(host) or host}{separator}{port}" if separator else endpoint
