"""Permit and surroundings of a stream container."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError, WireError
from homeport.config.settings.sections import JobConfig
from homeport.container.host.permit import Permit
from homeport.container.incarnation.environment import Environment, am_client, config_given
from homeport.job_coordinator.own_folders import NotOwnError

JOB = JobConfig.of(Config({"job.name": "j", "job.id": "2", "job.default.system": "kafka"}))


def _environment(tmp_path: Path, **variables: str) -> Environment:
    return Environment.of({"NM_HOST": "NM1"} | variables, tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"processor_id":"1","epoch":"x"}'])
def test_a_malformed_permit_is_refused(text: str) -> None:
    """With its beginning in the message."""
    with pytest.raises(WireError, match="not a permit"):
        Permit.from_json(text)


def test_state_lives_below_the_nodes_folder(tmp_path: Path) -> None:
    """In the job's folder there; the host is compared in lower case.

    Stores without a changelog live apart, in the work folder, or in a folder for each job: those of
    two jobs never meet.
    """
    environment = _environment(tmp_path, LOGGED_STORE_BASE_DIR="/state")
    assert environment.host == "nm1"
    assert environment.state_root(JOB) == Path("/state/j-2")
    assert environment.history_folder(JOB) == Path("/state/j-2/.history")
    config = Config({"job.name": "j", "job.id": "2", "job.default.system": "kafka"})
    assert environment.scratch_root(config) == tmp_path / "state"
    given = Config({**config, "job.non-logged.store.base.dir": "/scratch"})
    assert environment.scratch_root(given) == Path("/scratch/j-2")


@pytest.mark.parametrize("variable", ["LOGGED_STORE_BASE_DIR", "job.logged.store.base.dir", ""])
def test_the_jobs_folder_is_made_its_users_alone(tmp_path: Path, variable: str) -> None:
    """Below the node's folder or the work folder; what the job's key names is the operator's."""
    base = tmp_path / "base"
    base.mkdir(mode=0o755)
    key = {variable: str(base)} if variable.startswith("job") else {}
    config = Config({"job.name": "j", "job.default.system": "kafka", **key})
    job = JobConfig.of(config)
    variables = {variable: str(base)} if variable.isupper() else {}
    environment = _environment(tmp_path, **variables)
    for needed in ((False, False), (True, False), (True, True)):
        root, scratch = environment.made_roots(job, config, needed)
        assert root.exists() == (needed[0] or bool(key))
        assert scratch.exists() == (needed[1] or (needed[0] and scratch == root))
    assert scratch.stat().st_mode & 0o777 == 0o700
    assert root.stat().st_mode & 0o777 == (0o755 if key else 0o700)
    root.chmod(0o777)
    with pytest.raises(NotOwnError, match="mode 0777"):
        environment.made_roots(job, config)


def test_without_the_nodes_folder_the_jobs_is_used_as_it_is(tmp_path: Path) -> None:
    """Samza adds nothing to job.logged.store.base.dir; without that either, the work folder."""
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "job.logged.store.base.dir": "/own",
            "job.history.dir": "/history",
        }
    )
    environment = _environment(tmp_path)
    assert environment.state_root(JobConfig.of(config)) == Path("/own")
    assert environment.history_folder(JobConfig.of(config)) == Path("/history")
    assert environment.state_root(JOB) == tmp_path / "state"


def test_a_missing_variable_of_the_launcher_is_named(tmp_path: Path) -> None:
    """URL and token file."""
    given = {"SAMZA_COORDINATOR_URL": "http://h:1/"}
    with pytest.raises(ConfigError, match="HOMEPORT_TOKEN_FILE"):
        am_client(given, tmp_path)
    (tmp_path / "homeport-token").write_text("x\n", encoding="utf-8")
    client = am_client(given, tmp_path)
    assert (client.url, client._token) == ("http://h:1/", "x")
    with pytest.raises(ConfigError, match="SAMZA_COORDINATOR_URL is missing"):
        am_client({}, tmp_path)


def test_a_child_that_gets_ready_finds_the_configuration_of_its_processor() -> None:
    """In memory, and as often as it looks; another process has none."""
    fd = os.memfd_create("config")
    os.write(fd, b'{"job.name":"j"}')
    for _ in range(2):
        found = config_given({"HOMEPORT_CONFIG_FD": str(fd)})
        assert dict(found or {}) == {"job.name": "j"}
    os.close(fd)
    assert config_given({}) is None
