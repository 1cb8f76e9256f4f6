"""Judges a request: its caller, the rights of its token, and whether it is for this server.

PURE. Three kinds of token are valid. Each submission makes the job's own token for launchers,
containers and ``run-job``: it shows secrets and allows everything. The configuration in force has
the tokens of operators. One to read also shows the last log lines of failures; one to operate also
allows changes of the running job. Neither shows a secret, or serves a launcher.

A page of another server can have its own name resolved to this server's address, and then read
this server as its own (DNS rebinding). Such a request has the page's name in its header ``Host``.
An IP address in that header is safe: a page cannot have the address of another server.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from homeport.config.access_tokens import NamedToken, digest_of
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TokensKey
from homeport.config.errors import ConfigError

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+(%[^\]]*)?\]|[a-z0-9_.-]+)(:\d{0,5})?", re.ASCII)
_LOCAL: Final = "localhost"


class Role(IntEnum):
    """What a token allows; each role includes those below it."""

    NONE = 0
    READ = 1
    OPERATE = 2
    JOB = 3


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    ``name``: the name of its token; empty: it has none. ``address``: the address of the
    connection's peer.
    """

    name: str
    role: Role
    address: str


class OperatorTokens:
    """The tokens of operators that are valid now."""

    def __init__(self) -> None:
        self._config: Config | None = None
        self._operators: Mapping[str, tuple[str, Role]] = {}

    def configured(self, config: Config) -> None:
        """Take the operators' tokens from ``config``; take none from a key that is wrong."""
        if config is self._config:
            return
        self._config = config
        self._operators = {
            token.digest: (token.name, role)
            for key, role in (
                (keys.JOB_COORDINATOR_READ_TOKENS, Role.READ),
                (keys.JOB_COORDINATOR_OPERATE_TOKENS, Role.OPERATE),
            )
            for token in _tokens(key, config)
        }

    def holder(self, offered: bytes) -> tuple[str, Role]:
        """Return the token's name and role; ``("", Role.NONE)`` if it is not valid."""
        # A search by the digest: its duration reveals nothing of a valid token.
        return self._operators.get(digest_of(offered), ("", Role.NONE))


def _tokens(key: TokensKey, config: Config) -> tuple[NamedToken, ...]:
    try:
        return key.tokens(config)
    except ConfigError:
        return ()  # validation refuses it; if it is in force nevertheless, it gives no right


def is_of_another_page(origin: str | None, site: str | None, host: str | None) -> bool:
    """Return whether a browser marks a request as made by another server's page.

    Args:
        origin: the header ``Origin``; None: the caller, as every tool, does not send it.
        site: ``Sec-Fetch-Site``, which browsers send only to https and to this machine.
        host: ``Host``.
    """
    if site is not None and site not in {"same-origin", "none"}:
        return True
    return origin is not None and origin.partition("://")[2] != (host or "")


def names_of(machine: Iterable[str]) -> frozenset[str]:
    """Return the names as ``is_own`` compares them, and the first part of each long name."""
    found = {name.lower().rstrip(".") for name in machine}
    return frozenset(found | {name.partition(".")[0] for name in found if not _is_address(name)})


def is_own(host: str, *names: Iterable[str]) -> bool:
    """Return whether the header ``Host`` has an address, ``localhost``, or one of ``names``."""
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
