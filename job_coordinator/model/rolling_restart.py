"""A rolling restart: one container after the other starts with a changed configuration.

PURE. The record is written in the transaction that publishes the configuration's JobModel; how it
lies in the coordinator stream is in ``metadata.upgrade``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.job_coordinator.model.upgrade import UpgradePhase, UpgradeState

SUBJECT = "configuration"
REWRITTEN = "the values from before were written"


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """How far a changed configuration has come.

    ``state``: which processors have it; its packages are the releases of ``release``. ``version``:
    of the JobModel that brought the changed values. ``first``: the first JobModel since the last
    values that all containers ran with. ``back``: the JobModel that has those again; None: none
    has. ``former``: {key: its value in them}, secrets included; None: it was not set.
    """

    state: UpgradeState
    version: int
    first: int
    back: int | None
    former: Mapping[str, str | None]

    @property
    def is_under_way(self) -> bool:
        """Whether a container may still have other values than it is wanted with."""
        return not self.state.phase.is_final

    @property
    def lacks_former(self) -> bool:
        """Whether the former values must be written, as it goes back and no JobModel has them."""
        return self.state.phase is UpgradePhase.BACK and self.back is None

    def release(self, version: int) -> str:
        """Return which values a container has that started with that version of the JobModel."""
        if version < self.first or (self.back is not None and version >= self.back):
            return release_of(self.first - 1)
        return release_of(min(version, self.version))

    def is_former(self, config: Config) -> bool:
        """Return whether ``config`` has each former value."""
        return all(config.get(key) == value for key, value in self.former.items())


def release_of(version: int) -> str:
    """Return the name of the values that came with that version of the JobModel, for people."""
    return f"JobModel {version}"
