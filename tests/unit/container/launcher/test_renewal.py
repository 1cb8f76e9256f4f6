"""What a launcher takes with it into another environment, and what keeps it in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.config.errors import WireError
from homeport.container.launcher.renewal import MODULE, Handed, Renewable
from homeport.job_coordinator.http.messages import Stopped
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

STOPPED = Stopped(Incarnation(ProcessorId("0"), 3), StopCause.FAILED, 1, ("a line",))
VARIABLES = {"HOMEPORT_PYTHON": "/none/python"}


def test_what_has_ended_goes_with_it(tmp_path: Path) -> None:
    """And the package that the next incarnation has; YARN hands nothing on."""
    handed = Handed("ab" * 32, (STOPPED,))
    assert Handed.read(["launcher", str(handed.descriptor())]) == handed
    assert Handed.read(["launcher", str(Handed().descriptor())]) == Handed()
    assert Handed.read(["launcher"]) is None
    with pytest.raises(WireError, match="name no descriptor"):
        Handed.read(["launcher", "no number"])
    with (tmp_path / "file").open("wb+") as file, pytest.raises(WireError):
        Handed.read(["launcher", str(os.dup(file.fileno()))])


_EXEC = """
import os, sys
from tests.unit.container.launcher.test_renewal import STOPPED
from homeport.container.launcher.renewal import Handed
handed = Handed(None, (STOPPED,) * 4000)
code = "import sys; from homeport.container.launcher.renewal import Handed; " \
       "print(len(Handed.read(sys.argv).ended))"
os.execv(sys.executable, [sys.executable, "-c", code, str(handed.descriptor())])
"""


def test_what_has_ended_may_be_more_than_a_word_of_a_command_line_holds() -> None:
    """It goes through a real exec."""
    assert len(str(STOPPED.to_json())) * 4000 > 128 * 1024
    done = subprocess.run(
        [sys.executable, "-c", _EXEC],
        cwd=Path(__file__).parents[4],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "4000\n", done.stderr


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
