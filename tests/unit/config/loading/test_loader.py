"""Properties files and overrides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.loading.loader import load


def _file(folder: Path, data: bytes) -> Path:
    path = folder / "my job.properties"
    path.write_bytes(data)
    return path


def test_a_path_and_a_url_lead_to_the_same_file(tmp_path: Path) -> None:
    """PATH, file:PATH, file:///PATH and a quoted URL are read alike."""
    path = _file(tmp_path, b"# comment\na.b = 1\\\n  2\nc: d=e\n")
    expected = Config({"a.b": "12", "c": "d=e"})
    quoted = str(path).replace(" ", "%20")
    for form in (
        str(path),
        f"file:{path}",
        f"file:{quoted}",
        f"file://{quoted}",
        f"file://localhost{quoted}",
        f"FILE://LocalHost{quoted}",
    ):
        assert load(form) == expected


def test_only_a_url_has_percent_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is taken as it stands, with colon, percent and number sign; a URL escapes them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:b%20#c?.properties").write_bytes(b"a=1\n")
    expected = Config({"a": "1"})
    assert load("a:b%20#c?.properties") == expected
    assert load(f"file:{tmp_path}/a:b%2520%23c%3f.properties") == expected


def test_a_name_that_is_not_utf_8_can_be_given_as_a_url(tmp_path: Path) -> None:
    """A file's name may be any bytes."""
    (tmp_path / os.fsdecode(b"gr\xf6sse")).write_bytes(b"a=1\n")
    assert load(f"file://{tmp_path}/gr%F6sse") == Config({"a": "1"})


def test_overrides_win_the_last_one_first(tmp_path: Path) -> None:
    """A value may hold = and be empty."""
    path = _file(tmp_path, b"a=1\nb=2\n")
    loaded = load(str(path), ["a=3", "a=x=y", "c=", " d = 4 "])
    assert loaded == Config({"a": "x=y", "b": "2", "c": "", "d": "4"})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "iso-8859-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    """UTF-8, with or without a mark, and what Java used to write; escapes too."""
    path = _file(tmp_path, "job.name=größe\\u0021\n".encode(encoding))
    assert load(str(path))["job.name"] == "größe!"


def test_an_unreadable_file_gives_one_line(tmp_path: Path) -> None:
    """Missing file, folder, foreign URL, malformed escape, bad override: option, value, remedy."""
    bad_escape = str(_file(tmp_path, b"a=\\u12\n"))
    for path, rule in (
        (str(tmp_path / "none"), "there is no such file"),
        (str(tmp_path), "it is a folder"),
        (f"{bad_escape}/below", "it cannot be read"),
        ("a\0b", "it cannot be read"),
        ("http://h/x", "only files of this machine"),
        ("file://h/x", "only files of this machine"),
        (bad_escape, r"line 1 holds a malformed \\u escape"),
    ):
        with pytest.raises(ConfigError, match=rule) as caught:
            load(path)
        assert str(caught.value).startswith("--config-path = ")
        assert "\n" not in str(caught.value)
    good = str(_file(tmp_path, b"a=1\n"))
    for item in ("a", "=1", " =1"):
        with pytest.raises(ConfigError, match="form key=value"):
            load(good, [item])
    with pytest.raises(ConfigError, match=r"--config = .*: it must be UTF-8"):
        load(good, ["a=" + os.fsdecode(b"\xf6")])
