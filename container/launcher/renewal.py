"""How a launcher goes on in another Python environment: by exec, between two children.

Its process keeps its id, its folder and its YARN container. What it knows of incarnations that have
ended here goes with it, so that none runs twice (safety C4).
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeport.config.errors import WireError
from homeport.container.child.process import in_memory
from homeport.job_coordinator.http.messages import Stopped
from homeport.job_coordinator.model.json_values import parse_object
from homeport.job_coordinator.python_environment import become, make_ready, own_place

MODULE = "homeport.container.launcher.launcher"
"""Each version has its launcher here."""

log = logging.getLogger("launcher")


@dataclass(frozen=True, slots=True)
class Handed:
    """What a launcher keeps when it changes its environment.

    ``package``: that of the next incarnation; None: the submission's. ``ended``: the stops of
    incarnations that have run here, or must not.
    """

    package: str | None = None
    ended: tuple[Stopped, ...] = ()

    @staticmethod
    def read(words: Sequence[str]) -> Handed | None:
        """Return what the words of the command line name; None: YARN has started this process.

        WireError, OSError: they name something else.
        """
        if len(words) < 2:  # noqa: PLR2004 - the program, and this
            return None
        if not words[1].isdecimal():
            raise WireError("the words of a launcher name no descriptor")
        with os.fdopen(int(words[1]), "rb") as file:
            file.seek(0)
            body = parse_object(file.read(), "the words of a launcher")
        ended = tuple(Stopped.from_json(stopped) for stopped in body.get("ended", ()))
        return Handed(body.get("package"), ended)

    def descriptor(self) -> int:
        """Return what the command line names, open across an exec.

        A word of it has 128 KiB at most, and YARN may have removed this folder.
        """
        ended = [stopped.to_json() for stopped in self.ended]
        descriptor = in_memory({"package": self.package, "ended": ended})
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - the standard library's signature
        return descriptor


class Renewable:
    """The environment of this launcher. ``variables``: those of its process."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._own = own_place(variables)
        self.python = self._own or sys.executable
        self.version = importlib.metadata.version("homeport")

    def make_ready(self, place: str | None) -> None:
        """Have that environment on this host; HomeportError: it cannot be used."""
        if place != self._own:
            make_ready(place, MODULE, self._variables)

    def is_own(self, place: str | None) -> bool:
        """Return whether it is this environment; None: the submission's."""
        return place == self._own

    def become(self, place: str | None, handed: Handed) -> str:
        """Go on in that environment; return why that fails, else do not return."""
        log.info("this launcher goes on in %s", place or "the environment of the submission")
        descriptor = handed.descriptor()
        try:
            become(place, ("-m", MODULE, str(descriptor)), self._variables)
        except OSError as error:
            os.close(descriptor)
            return f"the environment cannot be started: {error}"
