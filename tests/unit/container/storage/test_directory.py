"""One store's directory: lock, OFFSET, its owner, and removals that are cut short."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from another_user import another_user, shared_base

from homeport.config.errors import StoreError, WireError
from homeport.config.system_stream import SystemStream
from homeport.container.progress import offset_file
from homeport.container.progress.offset_file import OFFSET_FILE
from homeport.container.storage import directory as module
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import LOCK_FILE

CHANGELOG = SystemStream("kafka", "store1-changelog")


def _offset(directory: StoreDirectory) -> int | None:
    return directory.read_offset(CHANGELOG, 0)[0]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[StoreDirectory]:
    """An empty one."""
    found = StoreDirectory(tmp_path)
    yield found
    found.release()


def test_offset_files_are_written_beside_the_store(
    directory: StoreDirectory, tmp_path: Path
) -> None:
    """Both forms, Samza's bytes, nothing temporary left."""
    assert directory.read_offset(CHANGELOG, 0) == (None, 0)
    assert not directory.has_content
    directory.write_offset(42)
    directory.write_offset_v2(CHANGELOG, 0, 42)
    assert _offset(directory) == 42
    assert (tmp_path / "OFFSET").read_bytes().hex() == "aced0005770c000000003224b08800023432"
    assert (tmp_path / "OFFSET-v2").read_bytes().endswith(b'{"kafka.store1-changelog.0":"42"}')
    assert {f.name for f in tmp_path.iterdir()} == {"OFFSET", "OFFSET-v2", ".homeport-lock"}


def test_a_standbys_offset_is_written_once_more(directory: StoreDirectory, tmp_path: Path) -> None:
    """R36: SIDE-INPUT-OFFSETS, where Samza's standbys look; an active one leaves none to go old."""
    directory.write_offset_v2(CHANGELOG, 0, 42, is_standby=True)
    assert (tmp_path / "SIDE-INPUT-OFFSETS").read_bytes() == (tmp_path / "OFFSET-v2").read_bytes()
    (tmp_path / "OFFSET-v2").unlink()
    assert _offset(directory) == 42
    directory.write_offset_v2(CHANGELOG, 0, 43)
    assert not (tmp_path / "SIDE-INPUT-OFFSETS").exists()
    directory.write_offset_v2(CHANGELOG, 0, 44, is_standby=True)
    directory.empty()
    assert not directory.has_content


def test_emptying_keeps_the_lock(directory: StoreDirectory, tmp_path: Path) -> None:
    """Everything else goes, folders too."""
    directory.write_offset(1)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_bytes(b"x")
    directory.empty()
    assert not directory.has_content
    with pytest.raises(StoreError):
        StoreDirectory(tmp_path)


def test_the_map_counts_before_other_offset_files(
    directory: StoreDirectory, tmp_path: Path
) -> None:
    """R12, R13: OFFSET-v2 before OFFSET, OFFSET before SIDE-INPUT-OFFSETS."""
    (tmp_path / "SIDE-INPUT-OFFSETS").write_bytes(offset_file.encode("100000001"))
    assert _offset(directory) == 100000001
    directory.write_offset(139)
    assert _offset(directory) == 139
    directory.write_offset_v2(CHANGELOG, 0, 200000002)
    assert _offset(directory) == 200000002


def test_the_time_of_a_file_that_cannot_be_read_is_an_error(directory: StoreDirectory) -> None:
    """Not a time long ago."""
    directory.write_text("ADJUNCT-META", "{}")
    directory.set_written("ADJUNCT-META", 17_000)
    assert directory.written_ms("ADJUNCT-META") == 17_000
    with pytest.raises(WireError, match="cannot be read: No such file"):
        directory.written_ms("CATALOGUE")


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


STORE = ("000012.sst", "CURRENT", "MANIFEST-000004", "STORE-META")


def _is_cut_short(directory: StoreDirectory, patch: pytest.MonkeyPatch, steps: int) -> bool:
    """Empties the directory; the step after the first ``steps`` fails. Whether one did."""
    remove, sync = module._remove, module._sync_directory
    left = [steps]

    def step() -> None:
        if left[0] == 0:
            raise OSError(5, "Input/output error")
        left[0] -= 1

    def remove_if_it_goes_on(path: Path) -> None:
        step()
        remove(path)

    def sync_if_it_goes_on(path: Path) -> None:
        step()
        sync(path)

    with patch.context() as patched:
        patched.setattr(module, "_remove", remove_if_it_goes_on)
        patched.setattr(module, "_sync_directory", sync_if_it_goes_on)
        try:
            directory.empty()
        except StoreError as error:
            assert "cannot be emptied" in str(error)  # noqa: PT017 - the last try succeeds
            return True
    return False


def test_offset_goes_before_anything_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a removal is cut short: a store that lacks a file has no OFFSET of any kind."""
    steps = 0
    is_cut_short = True
    found: list[tuple[int, int]] = []
    while is_cut_short:
        folder = tmp_path / str(steps)
        directory = StoreDirectory(folder)
        directory.write_offset(42)
        directory.write_offset_v2(CHANGELOG, 0, 42, is_standby=True)
        for name in STORE:
            (folder / name).write_bytes(b"x")
        is_cut_short = _is_cut_short(directory, monkeypatch, steps)
        offsets = sum((folder / name).exists() for name in offset_file.READ_ORDER)
        found.append((offsets, sum((folder / name).exists() for name in STORE)))
        directory.release()
        steps += 1
    assert found[0] == (3, len(STORE))
    assert found[-1] == (0, 0)
    assert [both for both in found if both[0] and both[1] < len(STORE)] == []


def test_the_removal_of_offset_is_on_the_disk_before_the_store_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is synced while the whole store is there: a power cut keeps this order."""
    directory = StoreDirectory(tmp_path)
    directory.write_offset(42)
    for name in STORE:
        (tmp_path / name).write_bytes(b"x")
    seen: list[tuple[bool, int]] = []
    sync = module._sync_directory

    def look_and_sync(path: Path) -> None:
        kept = sum((path / name).exists() for name in STORE)
        seen.append(((path / "OFFSET").exists(), kept))
        sync(path)

    monkeypatch.setattr(module, "_sync_directory", look_and_sync)
    directory.empty()
    directory.release()
    assert seen[0] == (False, len(STORE))
