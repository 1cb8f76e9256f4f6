"""When the AM's programs change their environment; the packages are the test's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from zipped import sha256_of, zipped

from homeport.appmaster.attempt.wanted_python import WantedPython
from homeport.appmaster.driver.rollouts import am_environment as module
from homeport.appmaster.driver.rollouts.am_environment import AmEnvironment, EnvironmentChangedError
from homeport.config.errors import HomeportError, UnavailableError
from homeport.job_coordinator.model.job_package import with_environment

CODE = zipped({"m.py": "1"})
NEW = with_environment(CODE, "/new/python")


class _Am:
    """An AM of the environment ``own``, whose last upgrade has left ``left``."""

    def __init__(self, folder: Path, own: str, left: bytes | None) -> None:
        self.folder = folder
        self.left = None if left is None else sha256_of(left)
        self.packages = {} if left is None else {sha256_of(left): left}
        self.failures: list[str] = []
        self.unanswered = 0
        variables = {"HOMEPORT_PYTHON": own}
        self.environment = AmEnvironment(
            folder, variables, lambda: self.left, self._read, self.failures.append
        )

    async def _read(self, name: str) -> bytes | None:
        if self.unanswered:
            self.unanswered -= 1
            raise UnavailableError("Kafka does not answer")
        return self.packages.get(name)

    def stays(self, limit_s: float = 0.1) -> bool:
        """Whether it goes on as it is for so long."""

        async def run() -> None:
            async with asyncio.timeout(limit_s):
                await self.environment.run()

        try:
            asyncio.run(run())
        except TimeoutError:
            return True
        except EnvironmentChangedError:
            pass
        return False

    @property
    def wanted(self) -> WantedPython | None:
        return WantedPython.read(self.folder)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", 0.001)
    monkeypatch.setattr(module, "make_ready", lambda *_: None)


@pytest.mark.parametrize(
    ("own", "left"), [("", None), ("", CODE), ("/new/python", NEW)], ids=["none", "code", "own"]
)
def test_an_am_in_the_environment_of_the_last_upgrade_stays(
    tmp_path: Path, own: str, left: bytes | None
) -> None:
    """An upgrade of the code alone changes nothing of it."""
    am = _Am(tmp_path, own, left)
    assert am.stays()
    assert (am.wanted, am.failures) == (None, [])


@pytest.mark.parametrize(
    ("own", "left", "wanted"),
    [("", NEW, "/new/python"), ("/new/python", None, None), ("/new/python", CODE, None)],
)
def test_the_next_driver_runs_in_what_the_upgrade_has_left(
    tmp_path: Path, own: str, left: bytes | None, wanted: str | None
) -> None:
    """Once Kafka answers; the supervisor finds it in the file."""
    am = _Am(tmp_path, own, left)
    am.unanswered = 2
    assert not am.stays(60)
    assert am.wanted == WantedPython(wanted)


def test_what_cannot_be_had_leaves_the_am_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status has the reason, once."""

    def refused(*_: object) -> None:
        raise HomeportError("environment /new/python: no such file")

    monkeypatch.setattr(module, "make_ready", refused)
    am = _Am(tmp_path, "", NEW)
    assert am.stays()
    assert len(am.failures) == 1
    assert am.failures[0].endswith("environment /new/python: no such file")
    am = _Am(tmp_path, "", NEW)
    am.packages.clear()
    assert am.stays()
    assert am.failures[0].endswith("is not in the coordinator stream")
    assert am.wanted is None


def test_an_environment_that_has_failed_is_not_tried_again(tmp_path: Path) -> None:
    """The file names it, and yet this driver runs in another one."""
    am = _Am(tmp_path, "", NEW)
    WantedPython("/new/python").write(tmp_path)
    assert am.stays()
    assert am.failures[0].endswith("its programs have failed at every start")
