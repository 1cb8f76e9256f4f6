"""Tokens of applications that have ended go; a living one's stays, whatever its cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.appmaster.yarn import resource_manager_rest
from homeport.appmaster.yarn.ended_tokens import forget_ended_tokens
from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.client_files import (
    KeptToken,
    forget_tokens_of_cluster,
    kept_tokens,
    token_folder,
)

HERE, ELSEWHERE = ("http://rm:8088",), ("http://other:8088",)
ENDED, RUNS, UNKNOWN = "application_1_0001", "application_1_0002", "application_1_0003"
STATES = {ENDED: "FINISHED", RUNS: "RUNNING"}


class Rm(ResourceManagerRest):
    """A ResourceManager that knows two applications."""

    def __init__(self, *, answers: bool = True) -> None:
        super().__init__(HERE, "conf")
        self._answers = answers
        self.asked: list[str] = []

    def application(self, application_id: str) -> resource_manager_rest.Application | None:
        """As HTTP would say."""
        if not self._answers:
            raise UnavailableError("it does not answer")
        self.asked.append(application_id)
        state = STATES.get(application_id)
        if state is None:
            return None
        return resource_manager_rest.Application(application_id, "j", state, "", "", "", "", 0)


def _keep(cache: Path, application_id: str, *urls: str, conf: str = "/conf") -> None:
    folder = token_folder({"HOMEPORT_CACHE_DIR": str(cache)})
    folder.mkdir(exist_ok=True)
    (folder / application_id).write_bytes(b"secret")
    if urls:
        kept = KeptToken(application_id, conf, urls)
        (folder / kept.note_name).write_bytes(kept.note())


def _names(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "tokens").iterdir())


@pytest.mark.parametrize(
    ("application_id", "urls", "stays"),
    [
        (ENDED, HERE, False),
        (RUNS, HERE, True),
        (UNKNOWN, HERE, False),
        (ENDED, ELSEWHERE, True),
        (UNKNOWN, ELSEWHERE, True),
        (ENDED, (), False),
        (RUNS, (), True),
        (UNKNOWN, (), True),
    ],
)
def test_only_its_own_resource_manager_ends_a_token(
    tmp_path: Path, application_id: str, urls: tuple[str, ...], *, stays: bool
) -> None:
    """One of an earlier release says no cluster: it goes where the application is known here."""
    _keep(tmp_path, application_id, *urls)
    rm = Rm()
    forget_ended_tokens({"HOMEPORT_CACHE_DIR": str(tmp_path)}, rm)
    assert bool(_names(tmp_path)) is stays
    assert rm.asked == ([] if urls == ELSEWHERE else [application_id])


def test_one_that_does_not_answer_ends_none(tmp_path: Path) -> None:
    """Nor does it keep the command from its work; without tokens it hears nothing."""
    forget_ended_tokens({"HOMEPORT_CACHE_DIR": str(tmp_path)}, Rm(answers=False))
    _keep(tmp_path, ENDED, *HERE)
    forget_ended_tokens({"HOMEPORT_CACHE_DIR": str(tmp_path)}, Rm(answers=False))
    assert _names(tmp_path) == [ENDED, f"{ENDED}.cluster"]


def test_a_local_cluster_takes_its_tokens_with_it(tmp_path: Path) -> None:
    """Those of its configuration alone; a damaged note is of no cluster."""
    _keep(tmp_path, ENDED, *HERE, conf=str(tmp_path / "a" / "conf"))
    _keep(tmp_path, RUNS, *HERE, conf=str(tmp_path / "b" / "conf"))
    _keep(tmp_path, UNKNOWN)
    (tmp_path / "tokens" / f"{UNKNOWN}.cluster").write_bytes(b"[")
    forget_tokens_of_cluster(tmp_path, tmp_path / "a" / "conf")
    assert [kept.application_id for kept in kept_tokens(tmp_path / "tokens")] == [RUNS, UNKNOWN]
    assert kept_tokens(tmp_path / "tokens")[1] == KeptToken(UNKNOWN)
