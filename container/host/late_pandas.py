"""Keeps pandas out of a process without a pipeline until the job's code imports it.

Arrow imports pandas at its first array, to know pandas' objects: 37 MB in each process, and its
start. So Arrow does not find it then. Once other code has imported pandas, Arrow looks again: else
it would take a Series for a list, and NaN for a number.
"""

import contextlib
import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import Thread, get_ident
from types import ModuleType

import pyarrow as pa

_PANDAS = "pandas"


def choose_pandas(*, is_needed: bool) -> None:
    """Have Arrow make its first array without pandas or, in a thread of its own, with it."""
    if is_needed:
        Thread(target=with_pandas, name="arrow", daemon=True).start()
    else:
        without_pandas()


def with_pandas() -> None:
    """Import pandas now, which pyspark needs for its first frame, and have Arrow know it."""
    with contextlib.suppress(ImportError):  # pyspark reports that it is missing
        importlib.import_module(_PANDAS)
    pa.array([None])


def without_pandas() -> None:
    """Have Arrow make its first array without pandas, unless pandas is here already."""
    if _PANDAS in sys.modules or any(isinstance(f, _Watching) for f in sys.meta_path):
        return
    watching = _Watching()
    sys.meta_path.insert(0, watching)
    pa.array([None])
    watching.refused = None


class _Watching(MetaPathFinder):
    """Notices the first import of pandas. ``refused``: the thread that does not find it."""

    def __init__(self) -> None:
        self.refused: int | None = get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _PANDAS:
            return None
        if self.refused == get_ident():
            raise ModuleNotFoundError(f"{name} is not imported for Arrow alone", name=name)
        for other in sys.meta_path:
            spec = None if other is self else other.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loading(spec.loader)
                return spec
        return None


class _Loading(Loader):
    """Loads pandas as ``own`` does, and has Arrow look for it afterwards."""

    def __init__(self, own: Loader) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        with contextlib.suppress(ImportError):  # Arrow refuses one that is too old
            pa.nulls(0).to_pandas()
