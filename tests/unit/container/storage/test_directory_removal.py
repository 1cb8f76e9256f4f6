"""A removal that is cut short, at each of its steps, leaves no OFFSET beside a part of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.progress import offset_file
from homeport.container.storage import directory as module
from homeport.container.storage.directory import StoreDirectory

CHANGELOG = SystemStream("kafka", "store1-changelog")
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
