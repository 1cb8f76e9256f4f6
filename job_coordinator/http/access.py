"""Judges a request: its caller, what the token allows, and whether it asks for this server.

PURE. Three kinds of token are valid. The job's own, which each submission makes for launchers,
containers and ``run-job``: it shows secrets and may do everything. Those of operators, by the
configuration in force: to read, which shows last log lines of failures too, and to operate, which
may also change the running job. Neither of these two shows a secret, or serves a launcher.

A page of another server can have its own name resolved to this server's address, and then read it
as its own (DNS rebinding). Such a request has the page's name in its header ``Host``. An address is
no name, and needs none: no page can have one that is not its own.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from homeport.config.access_tokens import RESERVED, NamedToken, digest_of
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
    """``name``: of the token, empty without one. ``address``: of the peer of the connection."""

    name: str
    role: Role
    address: str


class Tokens:
    """The tokens that are valid now.

    Args:
        job: the job's own, which is exchanged while it runs.
    """

    def __init__(self, job: Callable[[], bytes]) -> None:
        self._job = job
        self._config: Config | None = None
        self._operators: Mapping[str, tuple[str, Role]] = {}

    def configured(self, config: Config) -> None:
        """Take operators' tokens from ``config``, from now on; where one is wrong, none."""
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

    def is_job(self, offered: bytes) -> bool:
        """Return whether it is the job's own, in a time that no difference changes."""
        return hmac.compare_digest(offered, self._job())

    def holder(self, offered: bytes) -> tuple[str, Role]:
        """Return the token's name and role; ``("", Role.NONE)``: it is no valid one."""
        if self.is_job(offered):
            return RESERVED, Role.JOB
        # Found by its digest: how long that takes says nothing of a valid token.
        return self._operators.get(digest_of(offered), ("", Role.NONE))


def _tokens(key: TokensKey, config: Config) -> tuple[NamedToken, ...]:
    try:
        return key.tokens(config)
    except ConfigError:
        return ()  # validation refuses it; one that is in force nevertheless opens nothing


def is_of_another_page(origin: str | None, site: str | None, host: str | None) -> bool:
    """Return whether a browser marks a request as made by another server's page.

    Args:
        origin: the header ``Origin``; None: it is not sent, as by every tool.
        site: ``Sec-Fetch-Site``, which browsers send to https and this machine alone.
        host: ``Host``.
    """
    if site is not None and site not in {"same-origin", "none"}:
        return True
    return origin is not None and origin.partition("://")[2] != (host or "")


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
