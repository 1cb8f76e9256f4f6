"""Which configuration values are secret, by the names of their keys.

PURE. The one rule, used wherever configuration is shown: HTTP, logs, errors, command lines. A key
that is wrongly taken for a secret costs a look at the file; one that is wrongly shown costs a
password: so the rule is wide.
"""

from __future__ import annotations

from collections.abc import Iterable

MASK = "********"
"""What is shown instead of a secret."""

_PREFIX = "sensitive."
_MARKS = (
    "credential",
    "oauthbearer.config",
    "passphrase",
    "passwd",
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


def shown_value(key: str, value: str) -> str:
    """``value`` as whoever may not see secrets sees it."""
    return MASK if is_secret(key) else value


def warnings_of_overrides(overrides: Iterable[str]) -> tuple[str, ...]:
    """One line for each secret among ``overrides`` (``key=value``), which any local user can read.

    The value is not in it.
    """
    names = (item.partition("=")[0].strip() for item in overrides)
    return tuple(
        f"{name} is on the command line, where everybody on this machine can read it: "
        "put it into the properties file"
        for name in dict.fromkeys(names)
        if is_secret(name)
    )
