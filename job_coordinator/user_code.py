"""Load what a job names of its own code, as ``module:name``, or raise one line with the reason."""

import importlib
import threading
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from homeport.config.errors import ConfigError, in_one_line
from homeport.config.loading.declared_job import declares, import_fault

IMPORTING = threading.RLock()
"""Held by a thread that imports the job's modules, or pyspark. The modules of pyspark import each
other: where two threads import them at once, both fail."""


def user_object(
    key: str, name: str, remedy: str = "see that it is in yarn.package.path and imports by itself"
) -> Any:  # noqa: ANN401 - whatever the module holds under the name
    """Import the module of ``name``; return what it holds under the name after the colon.

    ``remedy``: where the module cannot be imported.

    ConfigError: there is no such object; the line names ``key``, or the file that declares the job.
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
        of_file = _fault_of_file(module_name, attribute, error)
        rule = f"the module cannot be imported: {in_one_line(error)}"
        raise of_file or ConfigError(key, name, rule, remedy) from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        rule = f"the module {module_name} has no {attribute!r}"
        raise ConfigError(key, name, rule, "correct the name after the colon") from None


def _fault_of_file(module: str, variable: str, error: BaseException) -> ConfigError | None:
    """Return the error of a file that declares its job in Python; None: it is none, or unreadable.

    The user of such a job has never written its ``task.class``.
    """
    found = None if "." in module else PathFinder.find_spec(module)
    file = Path("" if found is None else found.origin or "")
    try:
        if not (file.is_file() and declares(file, variable)):
            return None
        is_alone = isinstance(error, ModuleNotFoundError) and _is_alone(file)
    except OSError:  # it may not be read, which the error of its import has
        return None
    remedy = "correct it"
    if is_alone:
        remedy = (
            f'where it is your own, ship its folder: keys={{"yarn.package.path": "."}} in '
            f"{file.name} (for homeport upgrade: --package=FOLDER); else install it for the job"
        )
    return import_fault(file, file.name, error, remedy)


def _is_alone(file: Path) -> bool:
    """Return whether the folder has no other file, as where run-job ships the file itself.

    No module is in a hidden file, as a file manager or an editor leaves one. OSError: the folder
    cannot be read.
    """
    names = {item.name for item in file.parent.iterdir() if not item.name.startswith(".")}
    return names <= {file.name, "__pycache__"}
