"""The jar that the AM runs: changes of two classes, checked by hash."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from homeport.appmaster.yarn import skein_jar
from homeport.config.errors import UnavailableError, WireError

GROWING_SHA256 = "4eb93e047b51dc189959e9101360d4c87a9b4fedb53f58bb34b09ba4c6c7c23c"
"""Of the class with the first patch alone."""


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def stock() -> list[bytes]:
    """The classes as the installed package ships them."""
    with zipfile.ZipFile(skein_jar.installed_jar()) as archive:
        return [archive.read(patch.entry) for patch in skein_jar.PATCHES]


def test_each_patch_gives_the_known_class(stock: list[bytes]) -> None:
    """Growing numbers give the measured class; all changes the classes that are shipped."""
    growing = skein_jar.patch_class(stock[0], skein_jar.ONLY_GROW)
    assert sha256(growing) == GROWING_SHA256
    assert len(growing) == len(stock[0])
    for data, patch in zip(stock, skein_jar.PATCHES, strict=True):
        assert sha256(data) == patch.stock
        assert sha256(skein_jar.patch_class(data, patch.changes)) == patch.patched


def test_a_patched_class_is_refused(stock: list[bytes]) -> None:
    """The patches do not apply twice."""
    for data, patch in zip(stock, skein_jar.PATCHES, strict=True):
        with pytest.raises(WireError, match="not the expected code"):
            skein_jar.patch_class(skein_jar.patch_class(data, patch.changes), patch.changes)


@pytest.mark.parametrize("patch", skein_jar.PATCHES)
def test_another_file_is_refused(patch: skein_jar.Patch) -> None:
    """A file that is cut short, or no class, is refused, not changed."""
    with pytest.raises(WireError, match="not the expected code"):
        skein_jar.patch_class(b"\xca\xfe\xba\xbe\0\0\0\x31", patch.changes)


def test_a_copy_is_made_once_and_mended(tmp_path: Path) -> None:
    """It holds the patched classes and all else; damaged, it is recreated, a good one kept."""
    wanted = tuple(patch.patched for patch in skein_jar.PATCHES)
    copy = skein_jar.ensure_patched_jar(tmp_path)
    assert skein_jar.class_hashes(copy) == wanted
    with zipfile.ZipFile(copy) as ours, zipfile.ZipFile(skein_jar.installed_jar()) as theirs:
        assert ours.namelist() == theirs.namelist()
    made = copy.stat().st_mtime_ns
    assert skein_jar.ensure_patched_jar(tmp_path).stat().st_mtime_ns == made
    copy.write_bytes(b"cut short")
    mended = skein_jar.ensure_patched_jar(tmp_path)
    assert skein_jar.class_hashes(mended) == wanted
    assert [p.name for p in copy.parent.iterdir()] == ["skein.jar"]


@pytest.mark.parametrize("place", range(len(skein_jar.PATCHES)))
def test_another_jar_is_refused_with_its_hash(
    stock: list[bytes], place: int, tmp_path: Path
) -> None:
    """A jar of another version is not patched by guess: the error names both hashes."""
    other = tmp_path / "skein.jar"
    with zipfile.ZipFile(other, "w") as archive:
        for i, patch in enumerate(skein_jar.PATCHES):
            archive.writestr(patch.entry, b"another class" if i == place else stock[i])
    with pytest.raises(UnavailableError, match=sha256(b"another class")):
        skein_jar.ensure_patched_jar(tmp_path / "cache", other)
    assert not (tmp_path / "cache").exists()
