"""What a user's machine may lack or have amiss: one line that says so, and what to do.

The programs ``docker`` and ``dockerd`` are scripts that answer as the real ones do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from docker_cluster import cluster, engine, names
from docker_cluster.engine import DockerError, Engine

Install = Callable[[str, str], None]

REFUSED = "permission denied while trying to connect to the Docker daemon socket"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a program on PATH, which has nothing else: its name, its shell script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("DOCKER_HOST", raising=False)

    def add(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return add


def as_user(monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    """The program is run by that user; 0: root."""
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_without_an_engine_root_is_shown_what_to_install(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are shown how to have one."""
    del install
    as_user(monkeypatch, 0)
    with pytest.raises(DockerError, match=r"none is installed: install one .*apt-get install"):
        engine.ensure(tmp_path, print)
    as_user(monkeypatch, 1000)
    with pytest.raises(DockerError, match=r"no Docker engine answers: start one .*systemctl"):
        engine.ensure(tmp_path, print)


def test_an_engine_that_this_user_may_not_use(install: Install, tmp_path: Path) -> None:
    """It is not taken for none."""
    install("docker", f"echo '{REFUSED}' >&2; exit 1")
    with pytest.raises(DockerError, match="this user may not use it: join the group docker"):
        engine.find(tmp_path)


def test_an_engine_that_is_too_old(install: Install, tmp_path: Path) -> None:
    """Its version is named."""
    install("docker", "echo 19.03.5")
    with pytest.raises(DockerError, match=r"the Docker engine is 19\.03\.5: install 20\.10 or"):
        engine.find(tmp_path)


def test_an_engine_without_compose(install: Install) -> None:
    """Compose 2 is taken before compose 1; without both, the line says what to install."""
    install("docker", "exit 1")
    with pytest.raises(DockerError, match=r"has no compose: install it .*docker-compose"):
        Engine("").compose()
    install("docker-compose", "exit 0")
    assert Engine("").compose() == ("docker-compose",)
    install("docker", "exit 0")
    assert Engine("").compose() == ("docker", "compose")


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has both numbers."""
    cluster._require_memory()
    monkeypatch.setattr(cluster, "_NEEDED_MB", 10**9)
    with pytest.raises(DockerError, match=r"\d+ MB of memory are free, .* needs 1000000000 MB: "):
        cluster._require_memory()


ADDRESSES = {"rm": "10.0.0.10", "nm1": "10.0.0.11"}
NAMES = "10.0.0.10  STREAM rm\n10.0.0.10  RAW\n10.0.0.11  STREAM nm1\n10.0.0.11  RAW\n"


@pytest.mark.parametrize(
    ("printed", "amiss"),
    [
        (NAMES, ""),
        (NAMES.replace("10.0.0.11 ", "10.0.0.99 "), "rm finds nm1 at 10.0.0.99, and it is at "),
        ("10.0.0.10 STREAM rm", "rm finds nm1 at no address, and it is at 10.0.0.11: names are"),
    ],
)
def test_a_container_that_does_not_find_another_by_its_name(
    install: Install, printed: str, amiss: str
) -> None:
    """The line names both, and what it finds."""
    install("docker", f"echo '{printed}'; exit 2")
    containers = {name: f"cluster-{name}" for name in ADDRESSES}
    if not amiss:
        names.require(Engine(""), containers, ADDRESSES)
        return
    with pytest.raises(DockerError, match=f"^{amiss}.*docker/down, then docker/up$"):
        names.require(Engine(""), containers, ADDRESSES)


def test_a_container_that_has_ended_is_not_asked_for_names(install: Install) -> None:
    """That it has ended is reported of its daemon, with its last line."""
    install("docker", "echo 'Error response: Container 1 is not running' >&2; exit 1")
    names.require(Engine(""), {"rm": "cluster-rm"}, ADDRESSES)
