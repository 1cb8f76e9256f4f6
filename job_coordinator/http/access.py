"""The caller of a request, and what its token allows. PURE.

Three kinds of token are valid. The job's own, which each submission makes for launchers, containers
and ``run-job``: it shows secrets and may do everything. Those of operators, by the configuration in
force: to read, which shows last log lines of failures too, and to operate, which may also change
the running job. None of these two shows a secret, or says what only a launcher can know.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from homeport.config.access_tokens import RESERVED, NamedToken, digest_of
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TokensKey
from homeport.config.errors import ConfigError


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
        """Operators' tokens are those of ``config``, from now on; of one that is wrong, none."""
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
        """Whether it is the job's own, in a time that does not depend on where they differ."""
        return hmac.compare_digest(offered, self._job())

    def holder(self, offered: bytes) -> tuple[str, Role]:
        """The token's name and role; ``("", Role.NONE)``: it is no valid one."""
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
    """Whether a browser says that a page of another server has made a request.

    Args:
        origin: the header ``Origin``; None: it is not sent, as by every tool.
        site: ``Sec-Fetch-Site``, which browsers send to https and this machine alone.
        host: ``Host``.
    """
    if site is not None and site not in {"same-origin", "none"}:
        return True
    return origin is not None and origin.partition("://")[2] != (host or "")
