"""The types of configuration keys. ``all_keys`` has the keys themselves.

A name may hold parts in angle brackets (``systems.<system>.samza.factory``), which are given when
it is read. Reading goes through ``Config``, the only place where text becomes a value.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property, partial
from typing import Any, get_args, get_type_hints

from homeport.config.access_tokens import NamedToken, named_tokens
from homeport.config.config import INT_MAX, Config
from homeport.config.errors import ConfigError
from homeport.config.java_names import any_short_name, is_user_class
from homeport.config.number_text import whole_of
from homeport.config.system_stream import SystemStream

SAMZA = "Samza"
OWN = "Homeport"
"""Sources of keys, beside the documents, which go by their own names."""

REPLICAS_MAX = 2**15 - 1
"""Kafka counts replicas in 16 bits."""

_PART = re.compile(r"<\w+>")
_UNITS = {"ms": "ms", "bytes": "bytes", "mb": "MB"}
"""{last word of a name: the unit of its value}."""


def name_pattern(name: str) -> re.Pattern[str]:
    """Return what matches the full names of a key, with a group for each part in angle brackets."""
    return re.compile("(.+?)".join(re.escape(piece) for piece in _PART.split(name)))


def stream_named(key: str, text: str | None, topic: str, subject: str = "it") -> SystemStream:
    """Return the stream that ``text`` of ``key`` names; ConfigError where it names none.

    ``topic``: an example of one. ``subject``: which part of the value the error is about.
    """
    stream = None if text is None else SystemStream.parse(text)
    if stream is None:
        rule = f"{subject} must have the form system.stream"
        raise ConfigError(key, text, rule, f"write it as in kafka.{topic}")
    return stream


def literal_text(name: str) -> str:
    """Return what is left of a key's name without its parts in angle brackets."""
    return _PART.sub("", name)


class Liveness(Enum):
    """What a change of a key means for a job that runs."""

    LIVE = "applied by the running job"
    RETUNES_CONTAINERS = "applied by the running job and its running containers"
    RESTARTS_CONTAINERS = "applied by the running job, which restarts its containers"
    NEEDS_REDEPLOY = "applied by the next deployment"
    NEVER_WITH_STATE = "applied by the next deployment, and refused on a job that has state"

    @property
    def is_live(self) -> bool:
        """Return whether the running job takes a change, and nothing restarts."""
        return self in {Liveness.LIVE, Liveness.RETUNES_CONTAINERS}


class Reach(Enum):
    """What a value may make a tool do on the machine of its operator."""

    NOTHING = "nothing"
    ACCESS = "nothing; it decides which programs may use the job's port"
    PLACE = "what a tool runs, opens or connects to"
    CLASS = "a class that a tool imports, where it is one of the job's own"
    CODE = "code that a tool imports or runs to check it"


@dataclass(frozen=True, kw_only=True)
class Key(ABC):
    """One key.

    Args:
        name: the name; parts in angle brackets stand for any text.
        meaning: what it does, for the reference table.
        source: the document that asks for it, else SAMZA or OWN.
        liveness: what a change means for a job that runs; the next deployment where nothing else
            is declared.
        own_unit: unit of a value whose name does not end in it.
        legacy: Samza's older names, read where the present one is missing.
        fallback: name of the key whose value stands in where this one has none.
        reach: what it may make a tool do, which takes it from its operator's file alone.
        default: the value where none is set; None: there is none.
    """

    name: str = field(kw_only=False)
    meaning: str = field(kw_only=False)
    source: str = SAMZA
    liveness: Liveness = Liveness.NEEDS_REDEPLOY
    own_unit: str = ""
    legacy: tuple[str, ...] = ()
    fallback: str = ""
    reach: Reach = Reach.NOTHING
    default: str | int | None = None

    @property
    def unit(self) -> str:
        """Return the unit of the value; "" where it has none."""
        return self.own_unit or _UNITS.get(re.split("[.-]", self.name)[-1], "")

    def named(self, *parts: str) -> str:
        """Return the full name, ``parts`` put in place of the angle brackets from left to right."""
        remaining = list(parts)
        return _PART.sub(lambda _: remaining.pop(0), self.name)

    def given(self, config: Config, *parts: str) -> str:
        """Return the name under which ``config`` has a value; the present one where it has none."""
        name = self.named(*parts)
        if not self.legacy:
            return name
        return next((n for n in (name, *self.legacy) if config.get_str(n) is not None), name)

    def error(self, value: object, rule: str, remedy: str, *parts: str) -> ConfigError:
        """Return the error of ``value``; None: it is missing. ``parts``: as for ``named``."""
        return ConfigError(self.named(*parts), None if value is None else str(value), rule, remedy)

    def is_set(self, config: Config, *parts: str) -> bool:
        """Return whether ``config`` has a value that is not blank."""
        return config.get_str(self.given(config, *parts)) is not None

    def matches(self, name: str) -> bool:
        """Return whether ``name`` is this key, or one of its legacy names, with any parts."""
        return name in self.legacy or self.parts_of(name) is not None

    def parts_of(self, name: str) -> tuple[str, ...] | None:
        """Return what stands in ``name`` for the angle brackets; None where it is not this key."""
        match = self._pattern.fullmatch(name)
        return match.groups() if match else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return name_pattern(self.name)

    @property
    @abstractmethod
    def kind(self) -> str:
        """Return what its value is, for the reference table."""

    @property
    def names_nothing(self) -> bool:
        """Return whether no value can name a broker, class, path, topic, host or token."""
        return False

    @property
    def is_operators(self) -> bool:
        """Return whether an operator may set it by HTTP, with no right on the coordinator stream.

        The one place of the rule: a number, a switch or a choice that the running job takes live,
        and that decides on no access.
        """
        return self.liveness.is_live and self.names_nothing and self.reach is Reach.NOTHING

    def check(self, config: Config, name: str) -> None:
        """Raise ConfigError where the value of ``name``, which matches, is not of the type."""

    @abstractmethod
    def plain(self, text: str) -> str:
        """Return the one way to write the value ``text``: equal values become equal texts."""

    @property
    def default_text(self) -> str:
        """Return the default as the reference table shows it; "" where there is none."""
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return "" if self.default is None else str(self.default)


@dataclass(frozen=True, kw_only=True)
class TextKey(Key):
    """A key whose value is text; ``choices``, where given, are all that it may be."""

    default: str | None = None
    choices: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Return the choices, where there are any."""
        return " or ".join(self.choices) or "text"

    @property
    def names_nothing(self) -> bool:
        """Return whether there are choices; free text may name anything."""
        return bool(self.choices)

    def read(self, config: Config, *parts: str) -> str | None:
        """Return the value, else the default."""
        name = self.given(config, *parts)
        self.check(config, name)
        return config.get_str(name) or self.default

    def check(self, config: Config, name: str) -> None:
        """Raise ConfigError where the value is not one of the choices."""
        value = config.get_str(name)
        if value is not None and self.choices and value not in self.choices:
            allowed = " or ".join(self.choices)
            raise ConfigError(name, value, f"it must be {allowed}", f"write {allowed}")

    def plain(self, text: str) -> str:
        """Return the text, our name in place of a Java class's."""
        return any_short_name(text.strip())


@dataclass(frozen=True, kw_only=True)
class ClassKey(TextKey):
    """A key whose value is one of ``known`` classes, or where ``has_own`` one of the job's own.

    ``what``: what such a class is. ``otherwise``: the remedy for another value.
    """

    what: str
    known: tuple[str, ...]
    has_own: bool = False
    otherwise: str

    def check(self, config: Config, name: str) -> None:
        """Raise ConfigError where the value is neither."""
        value = config.get_str(name)
        if value is None or value in self.known or (self.has_own and is_user_class(value)):
            return
        raise ConfigError(name, value, f"no such {self.what} is known", self.otherwise)


@dataclass(frozen=True, kw_only=True)
class IntKey(Key):
    """A key whose value is a whole number, ``minimum`` to ``maximum``; no default: may be missing.

    A key that the driver waits by has a ``maximum`` that keeps the job operable.
    """

    default: int | None = None
    minimum: int = 1
    maximum: int = INT_MAX
    names_nothing = True

    @property
    def kind(self) -> str:
        """Return a number, and its range."""
        return f"whole number from {self.minimum} to {self.maximum}"

    def read(self, config: Config, *parts: str) -> int:
        """Return the value, else the default, which the key must have."""
        value = self.find(config, *parts)
        if value is None:
            raise ConfigError(self.named(*parts), None, "it is required", "set it")
        return value

    def find(self, config: Config, *parts: str) -> int | None:
        """Return the value, else the default, else None."""
        name = self.given(config, *parts)
        if config.get_str(name) is None:
            return self.default
        return self._number(config, name)

    def check(self, config: Config, name: str) -> None:
        """Raise ConfigError where the value is not a number, or is out of its range."""
        self._number(config, name)

    def plain(self, text: str) -> str:
        """Return the number without signs and zeros that say nothing; other text as it is."""
        try:
            return str(whole_of(text.strip()))
        except ValueError:
            return text.strip()

    def _number(self, config: Config, name: str) -> int:
        example = self.default or self.minimum
        return config.get_int(name, example, minimum=self.minimum, maximum=self.maximum)


@dataclass(frozen=True, kw_only=True)
class BoolKey(Key):
    """A key whose value is true or false."""

    default: bool = False

    kind = "true or false"
    names_nothing = True

    def read(self, config: Config, *parts: str) -> bool:
        """Return the value, else the default."""
        return config.get_bool(self.given(config, *parts), default=self.default)

    def check(self, config: Config, name: str) -> None:
        """Raise ConfigError where the value is neither true nor false."""
        config.get_bool(name, default=self.default)

    def plain(self, text: str) -> str:
        """Return true or false; other text as it is."""
        try:
            return str(Config({self.name: text}).get_bool(self.name, default=self.default)).lower()
        except ConfigError:
            return text.strip()


@dataclass(frozen=True, kw_only=True)
class ListKey(Key):
    """A key whose value is a comma-separated list; ``is_ordered``: whether its order matters."""

    is_ordered: bool = False

    kind = "list, separated by commas"

    def read(self, config: Config, *parts: str) -> tuple[str, ...]:
        """Return the items, in the order given."""
        return config.get_list(self.given(config, *parts))

    def plain(self, text: str) -> str:
        """Return the items, joined by commas; each once and sorted where order has no meaning."""
        items = Config({self.name: text}).get_list(self.name)
        return ",".join(items if self.is_ordered else sorted({*items}))


@dataclass(frozen=True, kw_only=True)
class TokensKey(ListKey):
    """A key whose value is a list of named digests of tokens."""

    is_ordered: bool = True

    kind = "list of NAME:DIGEST, separated by commas"

    def check(self, config: Config, name: str) -> None:
        """Raise ConfigError where an item is no named digest, or there are too many."""
        named_tokens(name, config.get_list(name))

    def tokens(self, config: Config) -> tuple[NamedToken, ...]:
        """Return the tokens, in the order given; of one name the newest is the last."""
        return named_tokens(self.name, config.get_list(self.name))


OwnTextKey, OwnIntKey = partial(TextKey, source=OWN), partial(IntKey, source=OWN)
OwnBoolKey, OwnListKey = partial(BoolKey, source=OWN), partial(ListKey, source=OWN)
"""Keys that Samza does not have, nor a document that asks for them."""


def values_of(view: type, config: Config, *parts: str) -> dict[str, Any]:
    """Return {field: value in ``config``} of the fields of ``view`` that name a key.

    Such a field is ``Annotated`` with its key; ``parts`` stand in its angle brackets.
    """
    return {name: _read(key, config, *parts) for name, key in _keys_of(view).items()}


_ReadKey = TextKey | IntKey | BoolKey | ListKey


@cache
def _keys_of(view: type) -> dict[str, _ReadKey]:
    hints = get_type_hints(view, include_extras=True)
    marks = {name: get_args(hint)[-1:] for name, hint in hints.items()}
    return {name: mark[0] for name, mark in marks.items() if mark and isinstance(mark[0], _ReadKey)}


def _read(key: _ReadKey, config: Config, *parts: str) -> object:
    return key.find(config, *parts) if isinstance(key, IntKey) else key.read(config, *parts)
