"""DeclaredKeys: the keys that a job in Python makes, with the line of its file that gave each."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from homeport.config.config import Config
from homeport.config.declarations.all_keys import declared
from homeport.config.errors import ConfigError

_PROJECT = "homeport."


class Late(ABC):
    """A value that is not known where the job is declared.

    ``is_outside``: whether it is of the environment or a secret, which tests do without.
    """

    is_outside = True

    @abstractmethod
    def text(self, key: str, environment: Mapping[str, str]) -> str:
        """Return the value of ``key``; ConfigError where there is none."""


class DeclaredKeys:
    """Keys and their values; ``lines`` has the line that gave each, in the file that declares.

    ``given``: the keys of ``Job(keys=...)``, which win.
    """

    def __init__(self) -> None:
        self._made: dict[str, str | Late] = {}
        self._given: dict[str, str | Late] = {}
        self.lines: dict[str, int] = {}

    def __getitem__(self, key: str) -> str | Late:
        return self._made[key]

    def __contains__(self, key: str) -> bool:
        return key in self._made

    def __setitem__(self, key: str, value: object) -> None:
        self._add(self._made, {key: value})

    def __ior__(self, found: Mapping[str, object]) -> DeclaredKeys:  # noqa: PYI034 - is not derived from
        self._add(self._made, found)
        return self

    def setdefault(self, key: str, value: object) -> str | Late:
        """Return the value that ``key`` has; it becomes ``value`` where there is none yet."""
        if key not in self._made:
            self[key] = value
        return self._made[key]

    def give(self, found: Mapping[str, object]) -> None:
        """Add the keys of ``Job(keys=...)``; ConfigError: a value breaks the rule of its key."""
        self._add(self._given, found)

    def _add(self, to: dict[str, str | Late], found: Mapping[str, object]) -> None:
        texts = {key: _checked(key, value) for key, value in found.items()}
        to.update(texts)
        self.lines.update(dict.fromkeys(texts, _line()))

    def given(self, key: str) -> str | None:
        """Return the text that ``Job(keys=...)`` has for ``key``."""
        found = self._given.get(key)
        return None if isinstance(found, Late) else found

    def texts(self, environment: Mapping[str, str] | None) -> dict[str, str]:
        """Return all keys with their texts.

        ``environment``: where late values are; None: keys of those outside are left out.
        """
        texts: dict[str, str] = {}
        for key, value in {**self._made, **self._given}.items():
            if isinstance(value, str):
                texts[key] = value
            elif environment is not None or not value.is_outside:
                texts[key] = value.text(key, environment or {})
        return texts


def _line() -> int:
    """Return the line that runs now in the first frame outside of this project."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - of the file that declares
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_PROJECT):
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno


def _checked(key: str, value: object) -> str | Late:
    """Return ``value`` as a properties file has it, once the key's declaration takes it."""
    if isinstance(value, Late):
        return value
    if not isinstance(value, str | int | float | Path):
        rule = f"a value of a key is text, a number or a switch, not {type(value).__name__}"
        raise ConfigError(key, str(value), rule, 'write it as a properties file does, as in "a,b"')
    text = str(value).lower() if isinstance(value, bool) else str(value)
    declaration = declared(key)
    if declaration is not None:
        declaration.check(Config({key: text}), key)
    return text
