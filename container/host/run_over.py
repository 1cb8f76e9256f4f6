"""RunOver: what stands for the insides of a store, collector or scheduler whose run has ended.

A process may run one incarnation after another. Code of the job may still hold objects of an
earlier one: a call that changed nothing, or the new one's state, would lose something silently.
"""

from typing import Any, NoReturn

from homeport.config.errors import HomeportError


class RunOverError(HomeportError):
    """Code of the job has called an object whose run has ended."""


class _Over:
    """Refuses every use; so a call of an object that still works has nothing more to check."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RunOverError(
            "a store, collector, scheduler or context of an earlier run was used: that run has "
            "ended, so take it from the context in each init, and keep none of them in a module"
        )

    __getattr__ = __getitem__ = __setitem__ = __contains__ = __iter__ = __len__ = _refuse
    __call__ = _refuse


OVER: Any = _Over()
