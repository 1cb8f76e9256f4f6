"""The native library: its name, and the reasons for which there is none."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from homeport.container.native import library
from homeport.container.native.library import NoLibraryError


def test_its_name_is_of_no_module_and_changes_with_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What imports all modules of homeport leaves it alone; a former one is never loaded."""
    name = library.file_name()
    assert inspect.getmodulename(name) is None
    (tmp_path / "other.cpp").write_text("int f() { return 1; }\n", encoding="utf-8")
    monkeypatch.setattr(library, "_HERE", tmp_path)
    assert library.file_name() != name


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [("none-such", "no C\\+\\+ compiler was found \\(CXX, "), ("false", "/false fails: ")],
)
def test_without_a_compiler_that_works_the_reason_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, reason: str
) -> None:
    """Nothing is left behind."""
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(NoLibraryError, match=reason):
        library.make(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_library_is_made_once_and_a_former_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call finds it."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "one.cpp").write_text("int f() { return 1; }\n", encoding="utf-8")
    monkeypatch.setattr(library, "_HERE", sources)
    former = tmp_path / f"homeport-x{library.SUFFIX}"
    former.touch()
    made = library.make(tmp_path)
    assert made.is_file()
    assert not former.exists()
    monkeypatch.setenv("CXX", "none-such")
    assert library.make(tmp_path) == made


def test_where_it_is_not_or_does_not_load_the_reason_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an installation without a compiler, or a file of another machine."""
    monkeypatch.setattr(library, "_HERE", tmp_path)
    load = library.load.__wrapped__
    with pytest.raises(NoLibraryError, match="was made without a C\\+\\+ compiler"):
        load()
    (tmp_path / library.file_name()).write_bytes(b"of another machine")
    with pytest.raises(NoLibraryError, match="this machine cannot load it"):
        load()
