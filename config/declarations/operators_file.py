"""What a tool takes from its operator's file, and never from the coordinator stream.

PURE. More programs may write that stream than the operator of a tool trusts with this machine: what
the stream alone names is not run, opened, connected to or imported here.
"""

from collections.abc import Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, Reach
from homeport.config.errors import ConfigError
from homeport.config.java_names import user_class

_REMEDY = "write it into the properties file, if that is meant"


def with_own_places(recorded: Config, file: Config) -> Config:
    """Return ``recorded``, in which programs, paths and addresses are those of ``file`` alone."""
    kept = {name: value for name, value in recorded.items() if not _is_place(name)}
    own = {name: value for name, value in file.items() if _is_place(name)}
    return Config({**kept, **own})


def taking_back(name: str) -> str:
    """Return the command that takes back what a program has written into the stream."""
    return f"homeport config set {name} --delete"


def require_own_code(recorded: Config, file: Config, *only: Key) -> None:
    """Require that ``file`` names all code that a tool would import by ``recorded``.

    ``only``: these keys alone. ConfigError: the coordinator stream names other code.
    """
    for name, value in recorded.items():
        key = keys.declared(name)
        if key is None or (only and key not in only) or key.reach is Reach.PLACE:
            continue
        if reaches_out(key, value) and not _is_same(key, file.get(name), value):
            has = "another one" if name in file else "none"
            rule = (
                f"the coordinator stream names it, the properties file {has}: no tool imports on "
                "this machine what the stream alone names"
            )
            raise ConfigError(name, value, rule, _REMEDY)


def require_of_file(written: Mapping[str, str], file: Config) -> None:
    """Require that no program has written what ``run-job`` would run, open or connect to here.

    ConfigError: one has, and ``file`` has another value.
    """
    for name, value in written.items():
        key = keys.declared(name)
        if key is not None and reaches_out(key, value) and not _is_same(key, file.get(name), value):
            rule = (
                f"coordinator-stream-writer has set it, and it names {key.reach.value}: run-job "
                "takes that from the properties file alone"
            )
            raise ConfigError(name, value, rule, f"{_REMEDY}; {taking_back(name)}")


def reaches_out(key: Key, value: str) -> bool:
    """Return whether the value makes a tool run, open, connect to or import something."""
    if key.reach is Reach.CLASS:
        return user_class(value.strip()) is not None
    return key.reach not in {Reach.NOTHING, Reach.ACCESS}


def _is_place(name: str) -> bool:
    key = keys.declared(name)
    return key is not None and key.reach is Reach.PLACE


def _is_same(key: Key, of_file: str | None, value: str) -> bool:
    return of_file is not None and key.plain(of_file) == key.plain(value)
