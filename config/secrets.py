"""Which configuration values are secret, and how they are shown to whoever may not see them.

PURE. The one rule, used wherever configuration leaves the job: HTTP, logs, command lines. A key
that is wrongly taken for a secret costs a look at the file; one that is wrongly shown costs a
password: so the rule is wide.
"""

from __future__ import annotations

from homeport.config.config import Config

MASK = "********"
"""What is shown instead of a secret."""

_PREFIX = "sensitive."
_MARKS = (
    "credential",
    "oauthbearer.config",
    "password",
    "private.key",
    "sasl.jaas",
    "secret",
    "ssl.key",
    "token",
)


def is_secret(key: str) -> bool:
    """Whether the value of ``key`` is shown to nobody without the job's token.

    Case does not matter, and ``-`` and ``_`` count as dots.
    """
    plain = key.lower().replace("-", ".").replace("_", ".")
    return plain.startswith(_PREFIX) or any(mark in plain for mark in _MARKS)


def masked(config: Config) -> Config:
    """``config`` with every secret value, an empty one too, replaced by ``MASK``."""
    return Config({key: MASK if is_secret(key) else value for key, value in config.items()})
