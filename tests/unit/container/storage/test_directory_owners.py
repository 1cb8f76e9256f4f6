"""State on a host that jobs of several users share: another user's is not used, nor is a link."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from another_user import another_user, shared_base

from homeport.config.errors import StoreError
from homeport.container.progress.offset_file import OFFSET_FILE
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import LOCK_FILE

PARTS = ("flights-1", "counts", "Partition_0")


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_directory_of_another_users_making_is_not_used(depth: int) -> None:
    """That user would exchange the state under the job's hands: one line, and no lock is made."""
    with shared_base() as base:
        made = base.joinpath(*PARTS[:depth])
        made.mkdir(parents=True)
        for part in range(1, depth + 1):
            base.joinpath(*PARTS[:part]).chmod(0o777)
        (made / OFFSET_FILE).write_text("evil")
        with another_user(), pytest.raises(StoreError, match="flights-1: it belongs to user"):
            StoreDirectory(base.joinpath(*PARTS))
        assert [path.name for path in made.iterdir()] == [OFFSET_FILE]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_a_link_names_is_never_emptied(tmp_path: Path, depth: int) -> None:
    """A link at each part of the way leads to a folder of the job's own user: nothing is lost."""
    victim = tmp_path / "victim"
    below = victim.joinpath(*PARTS[depth:])
    below.mkdir(parents=True)
    (below / "precious").write_text("x")
    link = (tmp_path / "base").joinpath(*PARTS[:depth])
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    with pytest.raises(StoreError, match=f"{PARTS[depth - 1]}: it is a link"):
        StoreDirectory((tmp_path / "base").joinpath(*PARTS)).empty()
    assert [path.name for path in below.iterdir()] == ["precious"]


def test_a_link_in_the_directory_goes_and_what_it_names_stays(tmp_path: Path) -> None:
    """Also a link to a folder, at any depth."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("x")
    directory = StoreDirectory(tmp_path.joinpath(*PARTS))
    (directory.path / "link").symlink_to(victim)
    (directory.path / "inner").mkdir()
    (directory.path / "inner" / "link").symlink_to(victim)
    directory.remove()
    directory.release()
    assert [path.name for path in victim.iterdir()] == ["precious"]
    assert not directory.path.exists()


def test_a_directory_is_its_owners_alone(tmp_path: Path) -> None:
    """New, or of an earlier release, whose state goes on: no other user can look into it."""
    old = tmp_path.joinpath(*PARTS)
    old.mkdir(parents=True)
    for part in range(1, 4):
        tmp_path.joinpath(*PARTS[:part]).chmod(0o755)
    (old / "CURRENT").write_text("x")
    for path in (old, tmp_path / "flights-1" / "counts" / "Partition_1"):
        directory = StoreDirectory(path)
        directory.write_offset(7)
        directory.release()
        modes = [stat.S_IMODE(p.stat().st_mode) for p in (path, *path.parents[:2])]
        assert modes == [0o700] * 3
        files = {stat.S_IMODE((path / name).stat().st_mode) for name in (LOCK_FILE, OFFSET_FILE)}
        assert files == {0o600}
    assert (old / "CURRENT").read_text() == "x"
