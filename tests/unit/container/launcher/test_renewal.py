"""What a launcher takes with it into another environment, and what keeps it in its own."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.container.launcher.renewal import MODULE, Handed, Renewable
from homeport.job_coordinator.http.messages import Stopped
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

STOPPED = Stopped(Incarnation(ProcessorId("0"), 3), StopCause.FAILED, 1, ("a line",))
VARIABLES = {"HOMEPORT_PYTHON": "/none/python"}


def test_what_has_ended_goes_with_it() -> None:
    """And the package that the next incarnation has; YARN hands nothing on."""
    handed = Handed("ab" * 32, (STOPPED,))
    assert Handed.read(["launcher", handed.word()]) == handed
    assert Handed.read(["launcher", Handed().word()]) == Handed()
    assert Handed.read(["launcher"]) is None
    with pytest.raises(WireError):
        Handed.read(["launcher", "no json"])


def test_its_own_environment_needs_nothing() -> None:
    """Another one must start; one that is gone is named, and the launcher goes on."""
    own = Renewable(VARIABLES)
    assert (own.python, own.is_own("/none/python"), own.is_own(None)) == (
        "/none/python",
        True,
        False,
    )
    own.make_ready("/none/python")
    said = own.become("/none/other", Handed())
    assert said.startswith("the environment cannot be started: ")
    assert MODULE == "homeport.container.launcher.launcher"
