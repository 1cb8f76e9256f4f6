"""The jar that the AM runs: two changes of one class, checked by hash."""

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
def stock_class() -> bytes:
    """The class as the installed package ships it."""
    with zipfile.ZipFile(skein_jar.installed_jar()) as archive:
        return archive.read(skein_jar.CLASS_ENTRY)


def test_each_patch_gives_the_known_class(stock_class: bytes) -> None:
    """Growing numbers give the measured class; both patches the one that is shipped."""
    growing = skein_jar.patch_class(stock_class, skein_jar.ONLY_GROW)
    assert sha256(growing) == GROWING_SHA256
    both = skein_jar.patch_class(growing, skein_jar.END_WHEN_REPORTED)
    assert sha256(both) == skein_jar.PATCHED_SHA256
    assert skein_jar.patch_class(stock_class) == both
    assert len(growing) == len(stock_class)


def test_a_patched_class_is_refused(stock_class: bytes) -> None:
    """The patches do not apply twice."""
    with pytest.raises(WireError, match="not the expected code"):
        skein_jar.patch_class(skein_jar.patch_class(stock_class))


def test_another_file_is_refused() -> None:
    """A file that is cut short, or no class, is refused, not changed."""
    with pytest.raises(WireError, match="not the expected code"):
        skein_jar.patch_class(b"\xca\xfe\xba\xbe\0\0\0\x31")


def test_a_copy_is_made_once_and_mended(tmp_path: Path) -> None:
    """The copy holds the patched class and all else; damaged, it is recreated, a good one kept."""
    copy = skein_jar.ensure_patched_jar(tmp_path)
    assert skein_jar.class_sha256(copy) == skein_jar.PATCHED_SHA256
    with zipfile.ZipFile(copy) as ours, zipfile.ZipFile(skein_jar.installed_jar()) as stock:
        assert ours.namelist() == stock.namelist()
    made = copy.stat().st_mtime_ns
    assert skein_jar.ensure_patched_jar(tmp_path).stat().st_mtime_ns == made
    copy.write_bytes(b"cut short")
    mended = skein_jar.ensure_patched_jar(tmp_path)
    assert skein_jar.class_sha256(mended) == skein_jar.PATCHED_SHA256
    assert [p.name for p in copy.parent.iterdir()] == ["skein.jar"]


def test_another_jar_is_refused_with_its_hash(tmp_path: Path) -> None:
    """A jar of another version is not patched by guess: the error names both hashes."""
    other = tmp_path / "skein.jar"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr(skein_jar.CLASS_ENTRY, b"another class")
    with pytest.raises(UnavailableError, match=sha256(b"another class")):
        skein_jar.ensure_patched_jar(tmp_path / "cache", other)
    assert not (tmp_path / "cache").exists()
