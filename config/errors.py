"""Root of the error tree.

Three kinds of error and no more: the user's (``ConfigError``, ``UnavailableError``: one line, no
traceback), the world's (``WireError``, ``StoreError``: bytes and files; ``FencedError``: somebody
newer), and our own bug (``InvariantViolation``: all bets are off).
"""

from __future__ import annotations

from homeport.config.secret_names import shown_value


class HomeportError(Exception):
    """Base of every error that this project raises on purpose."""


class ConfigError(HomeportError):
    """A configuration value breaks a rule; ``str()`` is one line with key, value, rule, remedy.

    A secret's value is in no part of it, nor in the error's fields.

    Args:
        key: the configuration key, or the command-line option, at fault.
        value: the value as it was given; None where the key is missing.
        rule: what must hold.
        remedy: what the user can do about it.
    """

    def __init__(self, key: str, value: str | None, rule: str, remedy: str) -> None:
        self.key = key
        self.value = None if value is None else shown_value(key, value)
        self.rule = rule
        self.remedy = remedy
        shown = "is missing" if self.value is None else f"= {self.value!r}"
        super().__init__(f"{key} {shown}: {rule}; {remedy}")


class UnavailableError(HomeportError):
    """Something outside (Kafka, the ResourceManager, the AM) did not answer.

    The message names it and a remedy.
    """


class FencedError(HomeportError):
    """Kafka refused a write: a newer holder of the same transactional id exists.

    This process must end, and must not take the id again.
    """


class WireError(HomeportError):
    """Bytes from a topic, a file or a socket that do not have the agreed form."""


class StoreError(HomeportError):
    """A state directory or store that cannot be used; the message names the path and the reason."""


class InvariantViolation(HomeportError):  # noqa: N818 - the field's word for it; an error of ours, never the user's
    """Something that must always hold does not: a bug of ours, which ends the AM attempt."""
