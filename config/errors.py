"""Root of the error tree: the errors that several packages raise or catch.

The user's: ``ConfigError``, ``UnavailableError`` (one line, no traceback). The world's:
``WireError``, ``StoreError`` (bytes and files), ``NoRightError`` (a server wants a token),
``FencedError`` (a newer process has taken over).
Our own bug: ``InvariantViolation``. A package derives its own errors from these, or from
``HomeportError``. No two errors have the same name.
"""

from homeport.config.printable import printable
from homeport.config.secret_names import is_secret, shown_value, without_secrets
from homeport.config.secret_values import MASK

_SHOWN_CHARACTERS = 200


class HomeportError(Exception):
    """Base of every error that this project raises on purpose."""


class ConfigError(HomeportError):
    """A configuration value breaks a rule; ``str()`` is one line with key, value, rule, remedy.

    A secret's value is in no part of it, nor in the error's fields. Of a long value the line has
    the beginning.

    Args:
        key: the configuration key, or the command-line option, at fault.
        value: the value as it was given; None where the key is missing.
        rule: what must hold.
        remedy: what the user can do about it.
    """

    def __init__(self, key: str, value: str | None, rule: str, remedy: str) -> None:
        if value and is_secret(key):
            rule, remedy = rule.replace(value, MASK), remedy.replace(value, MASK)
        self.key = without_secrets(
            key
        )  # part of a key may be a value, such as the name of a system is
        self.value = None if value is None else shown_value(key, value)
        self.rule = without_secrets(rule)
        self.remedy = without_secrets(remedy)
        shown = "is missing" if self.value is None else f"= {_in_brief(self.value)!r}"
        super().__init__(printable(f"{self.key} {shown}: {self.rule}; {self.remedy}"))


def _in_brief(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


class UnavailableError(HomeportError):
    """Something outside (Kafka, the ResourceManager, the AM) did not answer.

    The message names it and a remedy.

    Args:
        message: of one line.
        key: the configuration key of its place; None: it has none.
        value: the key's value.
    """

    def __init__(self, message: str, key: str | None = None, value: str | None = None) -> None:
        super().__init__(message)
        self.key, self.value = key, value


class UnansweredError(UnavailableError):
    """A running job has an order whose end is not known here; it may go on."""


class CannotListenError(UnavailableError):
    """A server's address or port is not to be had on this host."""


class FencedError(HomeportError):
    """Kafka refused a write: a newer holder of the same transactional id exists.

    This process must end, and must not take the id again.
    """


class WireError(HomeportError):
    """Bytes from a topic, a file or a socket that do not have the agreed form."""


class NoRightError(WireError):
    """A server answers, and the request needs a token, or one with another role."""


class StoreError(HomeportError):
    """A state directory or store that cannot be used; the message names the path and the reason."""


class InvariantViolation(HomeportError):  # noqa: N818 - the field's word for it; an error of ours, never the user's
    """Something that must always hold does not: a bug of ours, which ends the AM attempt."""


def in_one_line(error: BaseException) -> str:
    """Return ``Type: message`` of what was raised; the type alone where there is no message.

    The text can be written as UTF-8: half a surrogate pair in it is an escape.
    """
    try:
        text = " ".join(str(error).split())
    except Exception as another:  # noqa: BLE001 - user code may raise anything
        text = f"its text cannot be had ({type(another).__name__})"
    text = text.encode(errors="backslashreplace").decode()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
