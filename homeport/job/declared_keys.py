"""DeclaredKeys: the keys that a job in Python makes, with the line of its file that gave each."""

import sys
from abc import ABC, abstractmethod
from collections import UserDict
from collections.abc import Collection, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from homeport.config.config import Config
from homeport.config.declarations.all_keys import declared
from homeport.config.errors import ConfigError

_INSIDE = "homeport.", "collections.abc"
"""How names of modules begin between the file that declares and a key."""


class Late(ABC):
    """A value that is not known where the job is declared.

    ``is_outside``: whether it is of the environment or a secret, which tests do without.
    """

    is_outside = True

    @abstractmethod
    def text(self, key: str, environment: Mapping[str, str]) -> str:
        """Return the value of ``key``; ConfigError where there is none."""


class DeclaredKeys(UserDict[str, Any]):
    """Keys and their values, each a text or ``Late``, as their declarations take them.

    ``lines`` has the line that gave each, in the file that declares.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}

    def __setitem__(self, key: str, value: object) -> None:
        """Set a key; ConfigError: the value breaks the rule of its key."""
        super().__setitem__(key, _checked(key, value))
        self.lines[key] = _line()

    def texts(
        self, environment: Mapping[str, str] | None, *, without: Collection[str] = ()
    ) -> dict[str, str]:
        """Return all keys with their texts, those of ``without`` excepted.

        ``environment``: where late values are; None: keys of those outside are left out.
        """
        return {
            key: value.text(key, environment or {}) if isinstance(value, Late) else value
            for key, value in self.items()
            if key not in without
            and (environment is not None or not isinstance(value, Late) or not value.is_outside)
        }


def _line() -> int:
    """Return the line that runs now in the first frame outside of this project."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - of the file that declares
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_INSIDE):
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
