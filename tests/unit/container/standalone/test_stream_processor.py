"""A StreamProcessor before anything is begun: what it is made of, and what it refuses."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from small_jobs import KEYS as JOB
from small_jobs import LOGGED

from homeport.config.config import Config
from homeport.config.errors import CannotListenError, ConfigError
from homeport.container.standalone.stream_processor import (
    ProcessorPhase,
    StreamProcessor,
    child_environment,
)

KEYS = {**JOB, "job.coordinator.zk.connect": "127.0.0.1:1"}


def test_a_processor_has_an_id_a_place_and_a_folder(tmp_path: Path) -> None:
    """Ids are escaped in the name of the folder, so that no two share one."""
    config = Config({**KEYS, "job.location-id": "rack-1"})
    named = StreamProcessor(config, "a/b", tmp_path)
    assert (named.processor_id, named.location) == ("a/b", "rack-1")
    assert named.work_dir == tmp_path / "processor-a%2Fb"
    assert named.phase is ProcessorPhase.NEW
    assert not named.join(0)
    tls = Config({**config, "cluster-manager.jobcoordinator.tls.enabled": "true"})
    assert "processors serve http" in StreamProcessor(tls, "p", tmp_path).warnings[-1]
    assert StreamProcessor(Config({**config, "processor.id": "p"})).processor_id == "p"
    made = {StreamProcessor(config, None, tmp_path).processor_id for _ in range(2)}
    assert len(made) == 2
    assert StreamProcessor(config, None, tmp_path, is_local=True).processor_id == "0"


def test_what_cannot_run_is_refused_before_anything_begins(tmp_path: Path) -> None:
    """In one line each."""
    with pytest.raises(ConfigError, match=r"job\.coordinator\.zk\.connect is missing"):
        StreamProcessor(Config({**KEYS, "job.coordinator.zk.connect": ""}))
    with pytest.raises(ConfigError, match="homeport run-local needs local"):
        StreamProcessor(Config({**KEYS, "job.coordinator.factory": "zookeeper"}), is_local=True)
    standby = {"job.host-affinity.enabled": "true", "job.hotstandby.enabled": "true"}
    with pytest.raises(ConfigError, match="where a standby has none"):
        StreamProcessor(Config({**LOGGED, **KEYS, **standby}), is_local=True)
    (tmp_path / "file").write_text("", encoding="utf-8")
    blocked = StreamProcessor(Config(KEYS), "p", tmp_path / "file")
    with pytest.raises(ConfigError, match=r"--work-dir = .*: it must be a folder that can be"):
        blocked.start()


@pytest.mark.parametrize("name", ["processor-p", "state", "coordination"])
def test_folders_of_a_shared_work_folder_are_the_processors_alone(
    tmp_path: Path, name: str
) -> None:
    """One that all can write is refused before anything begins; the given one keeps its mode."""
    tmp_path.chmod(0o1777)
    (tmp_path / name).mkdir()
    (tmp_path / name).chmod(0o777)
    is_local = name == "coordination"
    keys = {key: value for key, value in KEYS.items() if not (is_local and ".zk." in key)}
    blocked = StreamProcessor(Config(keys), "p", tmp_path, is_local=is_local)
    with pytest.raises(ConfigError, match=r"other users can write there \(mode 0777\)"):
        blocked.start()
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777
    made = [path for path in tmp_path.iterdir() if path.name != name]
    assert {path.stat().st_mode & 0o777 for path in made} <= {0o700}


def test_a_child_finds_the_code_of_the_job_and_of_its_program(tmp_path: Path) -> None:
    """The package first, then what this program imports from, then its working directory."""
    paths = child_environment(Config({"yarn.package.path": str(tmp_path)}))["PYTHONPATH"].split(":")
    assert paths[0] == str(tmp_path)
    assert str(Path.cwd()) in paths
    assert "" not in child_environment(Config({}))["PYTHONPATH"].split(":")


def test_openblas_has_one_thread_in_a_child_unless_it_is_set_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By itself it starts one for each core of the host."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert child_environment(Config({}))["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    assert child_environment(Config({}))["OPENBLAS_NUM_THREADS"] == "4"


def test_a_port_that_is_taken_ends_the_start_and_nothing_runs(tmp_path: Path) -> None:
    """In one line that names the key; a folder that was taken is free again."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = Config(
            {
                **KEYS,
                "cluster-manager.jobcoordinator.url.host": "127.0.0.1",
                "cluster-manager.jobcoordinator.url.port": str(port),
            }
        )
        for _ in range(2):
            processor = StreamProcessor(config, "p", tmp_path, is_local=True)
            with pytest.raises(CannotListenError, match=r"jobcoordinator\.url\.port=0 takes any"):
                processor.start()
            assert processor.phase is ProcessorPhase.NEW
