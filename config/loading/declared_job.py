"""Finds the job that a Python file declares, for commands that take such a file as a configuration.

``--config-path=daily_totals.py`` imports the file as the module ``daily_totals``. Its folder comes
first on ``sys.path``, as where Python runs the file itself.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType

from homeport.config.declarations.task_keys import TASK_CLASS
from homeport.config.errors import ConfigError, HomeportError, in_one_line
from homeport.config.system_stream import SystemStream

SUFFIX = ".py"
_OPTION = "--config-path"


class DeclaredJob(ABC):
    """A job that Python code declares, as ``homeport.Job`` does: its keys and its task class."""

    @property
    @abstractmethod
    def config(self) -> Mapping[str, str]:
        """Return the keys that a properties file for the job would have."""

    @abstractmethod
    def task_class(self, streams: Collection[SystemStream], *, has_pipeline: bool) -> type:
        """Return the StreamTask or BatchTask that calls the job's functions.

        Args:
            streams: the inputs whose records tasks see, by the whole configuration.
            has_pipeline: whether tasks get the rows of a pipeline in place of these records.

        Raises:
            ConfigError: the job has no function for what tasks get.
        """


def job_in(path: Path) -> DeclaredJob:
    """Import the file and return the one job that it declares.

    ConfigError: there is no such file, it fails, or it does not have exactly one job. The line
    names the line of the file, where there is one.
    """
    if not path.is_file():
        raise _refused(path, "there is no such file", "give the path of the job's Python file")
    module = _imported(path)
    jobs = {id(item): name for name, item in vars(module).items() if isinstance(item, DeclaredJob)}
    if len(jobs) != 1:
        names = ", ".join(sorted(jobs.values())) or "none"
        rule = f"it must have one job at its top level, and has {names}"
        raise _refused(path, rule, 'declare one, as in job = Job("daily-totals")')
    (name,) = jobs.values()
    job: DeclaredJob = getattr(module, name)
    if TASK_CLASS.name not in job.config:
        rule = f"{name} is made by another module, in which containers do not find it"
        raise _refused(path, rule, 'call Job itself there, as in job = Job("daily-totals")')
    return job


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
        raise _failed(path, error) from None
    if not _is_of(module, path):
        rule = f"Python finds {getattr(module, '__file__', name)} in its place"
        raise _refused(path, rule, "rename the file, or take the other one out of PYTHONPATH")
    return module


def _is_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path.resolve()


def _failed(path: Path, error: BaseException) -> ConfigError:
    """Return the error of a file that cannot be imported, with the line of the file at fault."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
    if isinstance(error, SyntaxError) and error.filename == str(path.resolve()):
        lines = [error.lineno]
    where = f"line {lines[-1]}" if lines else "its import"
    if isinstance(error, ConfigError):
        return ConfigError(
            error.key, error.value, f"{error.rule} ({path.name}, {where})", error.remedy
        )
    reason = str(error) if isinstance(error, HomeportError) else in_one_line(error)
    return _refused(path, f"{where} fails: {reason}", "correct it")


def _refused(path: Path, rule: str, remedy: str) -> ConfigError:
    return ConfigError(_OPTION, str(path), rule, remedy)
