"""Which package of the job's code each container is to have.

PURE. An order to a launcher names the package; the launcher fetches one that it does not have.
"""

from __future__ import annotations

from typing import Protocol

from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.job_coordinator.model.ids import ProcessorId


class WantedPackages(Protocol):
    """The package of each processor, by the sha256 of its zip in lower-case hexadecimal digits."""

    def of(self, processor_id: ProcessorId) -> str | None:
        """The package that the next permit of the processor has; None: the submission's."""


def next_package(
    packages: WantedPackages, state: AllocatorState, processor_id: ProcessorId
) -> str | None:
    """What the next permit of that processor has; of a temporary standby, as its active one."""
    container = state.container(processor_id)
    is_temporary = container is not None and container.is_temporary
    return packages.of(container.group if container and is_temporary else processor_id)
