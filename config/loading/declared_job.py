"""Finds the job that a Python file declares, for commands that take such a file as a configuration.

``--config-path=daily_totals.py`` imports the file as the module ``daily_totals``. Its folder comes
first on ``sys.path``, as where Python runs the file itself.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import ModuleType

from homeport.config.declarations.task_keys import (
    TASK_CLASS,
    TASK_PIPELINE_CLASS,
    TASK_PIPELINE_SQL,
)
from homeport.config.errors import ConfigError, HomeportError, UnavailableError, in_one_line
from homeport.config.secret_names import shown_value
from homeport.config.system_stream import SystemStream

SUFFIX = ".py"
_OPTION = "--config-path"
_OF_CODE = frozenset(key.name for key in (TASK_CLASS, TASK_PIPELINE_CLASS, TASK_PIPELINE_SQL))
_FOUND: dict[Path, DeclaredJob] = {}
"""The jobs that this process has found, by their files."""


class DeclaredJob(ABC):
    """A job that Python code declares, as ``homeport.Job`` does: its keys and its task class."""

    @abstractmethod
    def config_of(self, environment: Mapping[str, str] | None) -> Mapping[str, str]:
        """Return the keys that a properties file for the job would have.

        ``environment``: where their secrets are; None: keys with such a value are left out.

        ConfigError: a secret or a file that the job names is not there.
        """

    @abstractmethod
    def line_of(self, key: str) -> int | None:
        """Return the line of the job's file that gave ``key``; None where none did."""

    @abstractmethod
    def task_class(self, streams: Collection[SystemStream], *, has_pipeline: bool) -> type:
        """Return the StreamTask or BatchTask that calls the job's functions.

        ``streams``: the inputs whose records tasks see. ``has_pipeline``: whether tasks get the
        rows of a pipeline in place of these records.

        ConfigError: the job has no function for what tasks get.
        """

    @abstractmethod
    def pipeline_function(self) -> Callable[..., object]:
        """Return the job's pipeline, a function of ``frames`` by their names.

        ConfigError: it has none.
        """


def job_in(path: Path) -> DeclaredJob:
    """Import the file and return the one job that it declares.

    ConfigError: there is no such file, it fails, or it does not have exactly one job. The line
    names the line of the file, where there is one.
    """
    remedy = "give the path of the job's Python file"
    try:
        is_there = path.is_file()
    except OSError as error:  # such as a folder that this user may not enter
        raise _refused(path, f"it cannot be read: {error.strerror}", remedy) from None
    if not is_there:
        raise _refused(path, "there is no such file", remedy)
    module = _imported(path)
    jobs = {id(item): name for name, item in vars(module).items() if isinstance(item, DeclaredJob)}
    if len(jobs) != 1:
        names = ", ".join(sorted(jobs.values())) or "none"
        rule = f"it must have one job at its top level, and has {names}"
        raise _refused(path, rule, 'declare one, as in job = Job("daily-totals")')
    (name,) = jobs.values()
    job: DeclaredJob = getattr(module, name)
    _FOUND[path] = job
    if _OF_CODE.isdisjoint(job.config_of(None)):
        rule = f"{name} is made by another module, in which containers do not find it"
        raise _refused(path, rule, 'call Job itself there, as in job = Job("daily-totals")')
    return job


def place_of(error: ConfigError | UnavailableError) -> str | None:
    """Return file and line of Python that gave the key at fault; None where none did."""
    for path, job in _FOUND.items():
        line = None if error.key is None else job.line_of(error.key)
        if line is not None and error.value in {None, _shown(job, str(error.key))}:
            return f"{path.name}, line {line}"
    return None


def _shown(job: DeclaredJob, key: str) -> str | None:
    """Return the value that the job itself has for ``key``, as errors show it."""
    try:
        value = job.config_of(None).get(key)
    except ConfigError:  # a file that it names is not there
        return None
    return None if value is None else shown_value(key, value)


def _imported(path: Path) -> ModuleType:
    name, folder = path.stem, str(path.resolve().parent)
    if not name.isidentifier() or name in sys.stdlib_module_names or name == "homeport":
        rule = f"containers import it, and {name!r} cannot be the name of a job's module"
        raise _refused(path, rule, "rename it, as in daily_totals.py")
    known = sys.modules.get(name)
    if known is not None and not _is_of(known, path):
        rule = f"another module of that name is loaded, {getattr(known, '__file__', name)}"
        raise _refused(path, rule, "rename the file")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - user code runs at import and may raise anything
        raise import_fault(path, str(path), error) from None
    if not _is_of(module, path):
        rule = f"Python finds {getattr(module, '__file__', name)} in its place"
        raise _refused(path, rule, "rename the file, or take the other one out of PYTHONPATH")
    return module


def _is_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path.resolve()


def declares(path: Path, variable: str) -> bool:
    """Return whether the text of the file makes a ``Job`` under the name, which its import may not.

    OSError: the file cannot be read.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    made = rf"^{re.escape(variable)}\s*(:[^=\n]*)?=\s*(\w+\.)*Job\("
    return re.search(made, text, re.MULTILINE) is not None


def import_fault(
    path: Path, shown: str, error: BaseException, remedy: str = "correct it"
) -> ConfigError:
    """Return the error of a file that cannot be imported, with the line of the file at fault.

    ``shown``: the file as its user knows it.
    """
    file = path.resolve()
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if _is_at(frame.filename, file)]
    if isinstance(error, SyntaxError) and error.filename and _is_at(error.filename, file):
        lines = [error.lineno]
    where = f"line {lines[-1]}" if lines else "its import"
    if isinstance(error, ConfigError):
        return ConfigError(
            error.key, error.value, f"{error.rule} ({path.name}, {where})", error.remedy
        )
    reason = str(error) if isinstance(error, HomeportError) else in_one_line(error)
    return ConfigError(_OPTION, shown, f"{where} fails: {reason}", remedy)


def _is_at(name: str, file: Path) -> bool:
    """Return whether the absolute ``name`` is the file; another is no file, as ``<string>``.

    To resolve a relative name asks for the working directory, which may be gone.
    """
    return Path(name).is_absolute() and Path(name).resolve() == file


def _refused(path: Path, rule: str, remedy: str) -> ConfigError:
    return ConfigError(_OPTION, str(path), rule, remedy)
