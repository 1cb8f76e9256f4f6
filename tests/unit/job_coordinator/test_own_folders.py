"""What is below a folder that many users share is this user's alone, or is not used."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

import pytest
from another_user import another_user, open_folder, shared_base, without_mask

from homeport.job_coordinator.own_folders import NotOwnError, make_own_folder, open_own_file

PARTS = ("job-1", "counts", "Partition_0")
GROUP = 12_345
"""Of no user of a test."""


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_what_is_made_is_closed_whatever_the_mask(tmp_path: Path) -> None:
    """The given folder keeps its mode; each one below it has mode 0700."""
    with without_mask():
        make_own_folder(tmp_path.joinpath("base", *PARTS), tmp_path / "base")
    modes = [_mode(tmp_path.joinpath("base", *PARTS[:n])) for n in range(4)]
    assert modes == [0o755, 0o700, 0o700, 0o700]


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o711, 0o2755])
def test_what_an_earlier_release_made_goes_on_closed(tmp_path: Path, mode: int) -> None:
    """Folders that others could read are closed; their files stay."""
    path = tmp_path.joinpath(*PARTS)
    path.mkdir(parents=True)
    (path / "OFFSET").write_text("7")
    for depth in range(1, 4):
        tmp_path.joinpath(*PARTS[:depth]).chmod(mode)
    make_own_folder(path, tmp_path)
    assert [_mode(tmp_path.joinpath(*PARTS[:n])) for n in range(1, 4)] == [0o700] * 3
    assert (path / "OFFSET").read_text() == "7"


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, depth: int, mode: int) -> None:
    """At each depth: what is in it may be another user's."""
    path = tmp_path.joinpath(*PARTS)
    path.mkdir(parents=True)
    tmp_path.joinpath(*PARTS[:depth]).chmod(mode)
    with pytest.raises(NotOwnError) as caught:
        make_own_folder(path, tmp_path)
    assert str(caught.value) == (
        f"{tmp_path.joinpath(*PARTS[:depth])}: other users can write there (mode {mode:04o}); "
        "remove it, or make sure of what is in it and give it mode 0700"
    )


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_folder_of_another_user_is_refused(depth: int) -> None:
    """At each depth, whatever its mode: its owner can exchange what is in it."""
    with shared_base() as base:
        made = base.joinpath(*PARTS[:depth])
        made.mkdir(parents=True)
        for folder in (made, *made.parents[: depth - 1]):
            folder.chmod(0o755)
        with another_user(), pytest.raises(NotOwnError, match="belongs to user") as caught:
            make_own_folder(base.joinpath(*PARTS), base)
        assert str(caught.value).startswith(f"{base / PARTS[0]}: it belongs to user ")
        assert list(made.iterdir()) == []


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_link_is_refused(tmp_path: Path, depth: int, target: str) -> None:
    """At each depth, also one of this user's: nothing is made or changed where it leads."""
    (tmp_path / "victim").mkdir(mode=0o755)
    base = tmp_path / "base"
    link = base.joinpath(*PARTS[:depth])
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / target)
    with pytest.raises(NotOwnError, match="it is a link, which is not followed"):
        make_own_folder(base.joinpath(*PARTS), base)
    assert list((tmp_path / "victim").iterdir()) == []
    assert not (tmp_path / "nowhere").exists()
    assert _mode(tmp_path / "victim") == 0o755


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    """It stays."""
    (tmp_path / "job-1").write_text("somebody's")
    with pytest.raises(NotOwnError, match="job-1: it is no folder"):
        make_own_folder(tmp_path.joinpath(*PARTS), tmp_path)
    assert (tmp_path / "job-1").read_text() == "somebody's"


@pytest.mark.parametrize("name", ["file", "file/base", "nowhere"])
def test_what_is_given_must_be_a_folder(tmp_path: Path, name: str) -> None:
    """Or not there: a file, a path below one, and a link to nowhere are one line each."""
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    with pytest.raises(NotOwnError, match="it is no folder"):
        make_own_folder(tmp_path / name / "job-1", tmp_path / name)


def test_the_given_folder_may_be_a_link_and_another_users(tmp_path: Path) -> None:
    """It is the operator's choice."""
    with shared_base() as base:
        (base / "link").symlink_to(base)
        with another_user():
            make_own_folder(base / "link" / "job-1", base / "link")
        assert (base / "job-1").is_dir()
    make_own_folder(tmp_path, tmp_path)


def test_a_given_folder_where_each_user_can_exchange_folders_is_refused() -> None:
    """Mode 0777: what is checked now may be another user's in a moment."""
    with open_folder() as base:
        base.chmod(0o777)
        with pytest.raises(NotOwnError, match="mode 0777"):
            make_own_folder(base / "job-1", base)
        assert list(base.iterdir()) == []


@pytest.mark.parametrize("mode", [0o775, 0o2770])
def test_a_given_folder_of_a_group_needs_the_sticky_bit(mode: int) -> None:
    """Else each of the group can put a folder of another user in the place of the job's."""
    with open_folder() as base:
        try:
            os.chown(base, -1, GROUP)
        except PermissionError:
            pytest.skip("this user gives no folder to another group")
        base.chmod(mode)
        with pytest.raises(NotOwnError, match=f"mode {mode:04o}"):
            make_own_folder(base / "job-1", base)
        base.chmod(mode | 0o1000)
        make_own_folder(base / "job-1", base)


def test_a_given_folder_may_be_of_the_users_own_group() -> None:
    """Many systems give each user a group of its own, and a mask with which it may write."""
    own = pwd.getpwuid(os.geteuid())
    with open_folder() as base:
        base.chmod(0o775)
        if grp.getgrgid(base.stat().st_gid).gr_name != own.pw_name:
            pytest.skip("this user has no group of its own")
        make_own_folder(base / "job-1", base)


def test_the_systems_refusals_pass() -> None:
    """A folder that this user cannot look into is an error of the system's."""
    with open_folder() as base, another_user():
        if os.access(base, os.W_OK, effective_ids=True):
            pytest.skip("this user is neither root nor another")
        with pytest.raises(PermissionError):
            make_own_folder(base / "job-1", base)


@pytest.mark.parametrize(
    ("folder", "wanted"),
    [(0o700, 0o600), (0o755, 0o600), (0o750, 0o600), (0o2750, 0o640), (0o2700, 0o600)],
)
def test_a_file_is_read_by_the_group_that_its_folder_passes_on(
    tmp_path: Path, folder: int, wanted: int
) -> None:
    """YARN gives its folders of logs so to the NodeManager's group; all else is its owner's."""
    tmp_path.chmod(folder)
    (tmp_path / "earlier").write_text("")
    (tmp_path / "earlier").chmod(0o644)
    with without_mask():
        for name in ("new", "earlier"):
            os.close(open_own_file(tmp_path / name, os.O_RDWR))
    assert [_mode(tmp_path / name) for name in ("new", "earlier")] == [wanted, wanted]


def test_a_file_is_never_another_users_nor_a_link(tmp_path: Path) -> None:
    """Neither is opened, and what the link names is not made."""
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        open_own_file(tmp_path / "link", os.O_RDWR)
    assert not (tmp_path / "elsewhere").exists()
    with shared_base() as base:
        (base / "theirs").write_text("")
        (base / "theirs").chmod(0o644)
        with another_user(), pytest.raises(PermissionError, match="it belongs to user"):
            open_own_file(base / "theirs", os.O_RDONLY)
