"""Config: an immutable map from key to text; the only place where text becomes a typed value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import overload

from homeport.config.errors import ConfigError
from homeport.config.number_text import whole_of
from homeport.config.secret_names import shown_value

INT_MAX = 2**31 - 1
"""The largest of Java's whole numbers of 32 bits, which Kafka, YARN and RocksDB count in too."""
LONG_MAX = 2**63 - 1
"""The largest of Java's whole numbers of 64 bits."""

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class Config(Mapping[str, str]):
    """Immutable configuration; equal and hashable by content, iterated in key order."""

    __slots__ = ("_hash", "_values")

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = {str(k): str(v) for k, v in sorted((values or {}).items())}
        self._hash: int | None = None

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._values.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._values == other._values

    def __repr__(self) -> str:
        return f"Config({len(self._values)} keys)"

    def merged(self, over: Mapping[str, str]) -> Config:
        """Return this configuration with ``over`` laid on top of it."""
        return Config({**self._values, **over})

    def subset(self, prefix: str) -> Config:
        """Return the keys that start with ``prefix``, without it."""
        return Config(
            {k[len(prefix) :]: v for k, v in self._values.items() if k.startswith(prefix)}
        )

    def require(self, key: str, remedy: str) -> str:
        """Return the value of ``key``; ConfigError where it is missing or blank."""
        value = self._values.get(key, "").strip()
        if not value:
            raise ConfigError(key, None, "it is required", remedy)
        return value

    @overload
    def get_str(self, key: str, default: str) -> str: ...
    @overload
    def get_str(self, key: str, default: None = None) -> str | None: ...
    def get_str(self, key: str, default: str | None = None) -> str | None:
        """Return the trimmed value of ``key``, or ``default`` where it is missing or blank."""
        value = self._values.get(key, "").strip()
        return value or default

    def get_int(
        self, key: str, default: int, *, minimum: int | None = None, maximum: int = LONG_MAX
    ) -> int:
        """Return the value of ``key`` as a whole number, from ``minimum`` to ``maximum``.

        ConfigError: the value is not a whole number, or is out of that range.
        """
        text = self.get_str(key)
        if text is None:
            return default
        try:
            number = whole_of(text)
        except ValueError:
            raise ConfigError(
                key, text, "it must be a whole number", f"write a number, such as {default}"
            ) from None
        if minimum is not None and number < minimum:
            raise ConfigError(
                key, text, f"it must be at least {minimum}", f"write {minimum} or more"
            )
        if number > maximum:
            raise ConfigError(
                key, text, f"it must be at most {maximum}", f"write {maximum} or less"
            )
        return number

    def get_bool(self, key: str, *, default: bool) -> bool:
        """Return the value of ``key`` as true or false; ConfigError where the value is neither."""
        text = self.get_str(key)
        if text is None:
            return default
        is_on = switch_of(text)
        if is_on is None:
            raise ConfigError(key, text, "it must be true or false", "write true or false")
        return is_on

    def get_list(self, key: str) -> tuple[str, ...]:
        """Return the comma-separated items of ``key``, trimmed, in order, without blank ones."""
        return tuple(
            item for item in (part.strip() for part in self._values.get(key, "").split(",")) if item
        )


def switch_of(text: str) -> bool | None:
    """Return ``text`` as true or false; None where it is neither."""
    if text.lower() in _TRUE:
        return True
    return False if text.lower() in _FALSE else None


def masked(config: Config) -> Config:
    """Return ``config`` with every secret value, an empty one too, replaced by ``MASK``."""
    return Config({key: shown_value(key, value) for key, value in config.items()})
