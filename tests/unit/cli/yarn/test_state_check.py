"""Whether a job gets the code that its last upgrade has left it with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.cli.yarn.job import Job
from homeport.cli.yarn.state_check import check_package, other_package
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.upgrade import UpgradePhase, UpgradeState

NEW, OLD, OTHER = "ab" * 32, "cd" * 32, "ef" * 32
DONE = UpgradeState("u", "application_1_1", NEW, None, 1, UpgradePhase.DONE)
GONE = replace(DONE, phase=UpgradePhase.GONE_BACK)
FORWARD = replace(DONE, phase=UpgradePhase.FORWARD, previous=OLD)


class Upgraded(Job):
    """A job whose coordinator stream has a record of an upgrade, or none."""

    state: UpgradeState | None
    exists: bool

    def has_stream(self) -> bool:
        """It was submitted before, or not."""
        return self.exists

    @contextlib.contextmanager
    def stream(self) -> Iterator[Any]:
        """Read to its head."""
        stream = InMemoryCoordinatorStream()
        if self.state is not None:
            stream.write([UpgradeManager.state_message(self.state)])
        stream.catch_up()
        yield stream


def job(state: UpgradeState | None, *, exists: bool = True) -> Upgraded:
    """It names the folder ``old``."""
    config = Config({"yarn.package.path": "old"})
    made = Upgraded(config, ResourceManagerRest((), "nowhere"), config)
    object.__setattr__(made, "state", state)
    object.__setattr__(made, "exists", exists)
    return made


@pytest.mark.parametrize(
    ("state", "package"),
    [
        (None, OLD),
        (DONE, NEW),
        (GONE, OTHER),
        (replace(GONE, previous=OLD), OLD),
        (FORWARD, NEW),
        (FORWARD, OLD),
        (replace(FORWARD, previous=None), OTHER),
    ],
)
def test_the_code_that_the_job_ran_may_be_submitted(
    state: UpgradeState | None, package: str
) -> None:
    """And any, where none of an upgrade's ran last: to submit new code is no accident."""
    check_package(job(state), package, is_other_meant=False)


@pytest.mark.parametrize(
    ("state", "how"),
    [
        (DONE, "has left the job with abababababab"),
        (replace(GONE, previous=NEW), "has left the job with abababababab"),
        (FORWARD, r"\(forward\) was under way between abababababab and cdcdcdcdcdcd"),
    ],
)
def test_other_code_is_no_accident(
    state: UpgradeState, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names both packages, the key and the option; with it, a note alone."""
    rule = f"it is package efefefefefef, and the last upgrade, in application_1_1, {how}"
    remedy = "let it name the code of the upgrade; --other-package if other code is meant"
    with pytest.raises(ConfigError, match=f"^yarn.package.path = 'old': {rule}; {remedy}$"):
        check_package(job(state), OTHER, is_other_meant=False)
    check_package(job(state), OTHER, is_other_meant=True)
    said = other_package(state, OTHER)
    assert capsys.readouterr().err == f"note: {said}\n"


def test_a_job_that_is_new_may_have_any_code() -> None:
    """It has no coordinator stream yet."""
    check_package(job(DONE, exists=False), OTHER, is_other_meant=False)
