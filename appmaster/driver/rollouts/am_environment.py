"""Has the AM's programs run in the environment that the last upgrade has left.

So they change once all containers run in the new one, and go back before the first container does:
while the job has two environments, the AM is in the older one. The driver writes the wanted one
into a file, and ends; its supervisor starts driver and keeper with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from homeport.appmaster.attempt.wanted_python import WantedPython
from homeport.config.errors import HomeportError, UnavailableError, WireError
from homeport.job_coordinator.model.job_package import contents_of
from homeport.job_coordinator.python_environment import make_ready, own_place

_POLL_S = 0.5
"""How often the package that the last upgrade has left is compared; nothing signals its change."""
_MODULES = (
    "homeport.appmaster.programs.application_master, homeport.appmaster.programs.lease_keeper"
)

log = logging.getLogger("driver")


class EnvironmentChangedError(HomeportError):
    """This driver ends, so that the next one runs in another environment."""


class AmEnvironment:
    """Compares the AM's environment with the wanted one, on the driver's event loop.

    ``folder``: the AM's. ``variables``: those of its process. ``left``: returns the package that
    the last upgrade has left; None: the submission's. ``read``: returns the zip of a package; None:
    it is absent. ``failed``: notes what the AM could not do, for the status.
    """

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        left: Callable[[], str | None],
        read: Callable[[str], Awaitable[bytes | None]],
        failed: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._variables = variables
        self._left = left
        self._read = read
        self._failed = failed
        self._own = own_place(variables)

    async def run(self) -> None:
        """Watch for ever; EnvironmentChangedError: the next driver needs another one."""
        judged: tuple[str | None] | None = None
        while True:
            left = self._left()
            if judged != (left,):
                try:
                    await self._judge(left)
                    judged = (left,)
                except UnavailableError as error:
                    log.warning("%s", error)
            await asyncio.sleep(_POLL_S)

    async def _judge(self, left: str | None) -> None:
        try:
            wanted = await self._environment(left)
            if wanted == self._own:
                return
            if WantedPython.read(self._folder) == WantedPython(wanted):
                raise WireError("its programs have failed at every start")
            await asyncio.to_thread(make_ready, wanted, _MODULES, self._variables)
        except UnavailableError:
            raise
        except HomeportError as error:
            now = self._own or "the submission's"
            what = f"the AM stays in its environment ({now}), and not that of the upgrade: {error}"
            log.warning("%s", what)
            self._failed(what)
            return
        WantedPython(wanted).write(self._folder)
        name = wanted or "the submission's"
        raise EnvironmentChangedError(f"the AM goes on in another environment: {name}")

    async def _environment(self, left: str | None) -> str | None:
        """Return the environment of that package; WireError: it is absent."""
        if left is None:
            return None
        data = await self._read(left)
        if data is None:
            raise WireError(f"package {left[:12]} is not in the coordinator stream")
        return contents_of(data).place
