"""A stateful stream processor for Python whose state stays on its machines.

The names that a job imports. They are loaded at their first use: the processes of a running job
import parts of this package that need no job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.job.declaration import Job

__all__ = ["Job"]


def __getattr__(name: str) -> object:
    """Return a public name, from the module that has it."""
    if name == "Job":
        from homeport.job.declaration import Job  # noqa: PLC0415 - at the first use, see above

        return Job
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
