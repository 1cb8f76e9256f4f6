"""Load what a job names of its own code, as ``module:name``, or raise one line with the reason."""

from __future__ import annotations

import importlib
import threading
from typing import Any

from homeport.config.errors import ConfigError, in_one_line

IMPORTING = threading.RLock()
"""Held by a thread that imports the job's modules, or pyspark. The modules of pyspark import each
other: where two threads import them at once, both fail."""


def user_object(
    key: str, name: str, remedy: str = "see that it is in yarn.package.path and imports by itself"
) -> Any:  # noqa: ANN401 - whatever the module holds under the name
    """Import the module of ``name``; return what it holds under the name after the colon.

    ``remedy``: where the module cannot be imported.

    ConfigError: there is no such object; the line names ``key``.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise ConfigError(key, name, "it must have the form module:name", "write it so")
    try:
        with IMPORTING:
            module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - user code runs at import and may raise anything
        rule = f"the module cannot be imported: {in_one_line(error)}"
        raise ConfigError(key, name, rule, remedy) from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        rule = f"the module {module_name} has no {attribute!r}"
        raise ConfigError(key, name, rule, "correct the name after the colon") from None
