"""docker/down removes both clusters of a clone: that of docker/up, and what docker/demo has left.

The program ``docker`` is a script that writes down how it is called.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from docker_cluster import __main__, cluster, demo
from docker_cluster.cluster import DockerCluster, Started

Removed = Callable[[], list[str]]


@pytest.fixture
def removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Removed:
    """Returns the projects that docker/down has removed, in their order."""
    calls, programs = tmp_path / "calls", tmp_path / "bin"
    programs.mkdir()
    (programs / "docker").write_text(f'#!/bin/sh\necho "$@" >> {calls}\necho 24.0.1\n')
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(sys, "argv", ["docker", "down"])
    places = (tmp_path / "docker", tmp_path / "cache")
    monkeypatch.setattr(DockerCluster.__init__, "__defaults__", places)
    monkeypatch.setattr(cluster, "_DEMO_FOLDER", tmp_path / "demo", raising=False)

    def down() -> list[str]:
        calls.write_text("")
        assert __main__.main() == 0
        lines = [line.split() for line in calls.read_text().splitlines()]
        return [words[words.index("-p") + 1] for words in lines if "--volumes" in words]

    return down


def started(folder: Path) -> str:
    """A cluster of that folder is up; its name."""
    folder.mkdir(exist_ok=True)
    name = DockerCluster(folder).name
    ports = {"RM_PORT": 1, "KAFKA_PORT": 2, "ZK_PORT": 3}
    record = Started(name, "", "image", "10.0.0", ports, "id", "/a/archive", "fair")
    (folder / "cluster.json").write_text(json.dumps(asdict(record)))
    return name


def test_what_a_demo_has_left_is_removed_too(removed: Removed, tmp_path: Path) -> None:
    """Also where docker/up was not called since; then there is nothing more to remove."""
    kept, own = started(tmp_path / "demo"), started(tmp_path / "docker")
    assert removed() == [kept, own]
    assert removed() == []
    started(tmp_path / "demo")
    assert removed() == [kept]


def test_a_demo_that_runs_keeps_its_cluster(
    removed: Removed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The clone's other cluster is removed, and a second demo does not begin."""
    name = started(tmp_path / "demo")
    with DockerCluster.of_demo().owned() as is_alone:
        assert is_alone
        own = started(tmp_path / "docker")
        assert removed() == [own]
        sys.argv = ["docker/demo"]
        assert demo.main() == 1
    printed = capsys.readouterr()
    assert f"docker/demo runs: its cluster {name} stays until its end" in printed.out
    assert "another docker/demo of this clone runs" in printed.err
    assert DockerCluster.of_demo().is_left
