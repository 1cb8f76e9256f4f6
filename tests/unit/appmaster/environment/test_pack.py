"""The cache of packed environments: what stays when another one is packed."""

import os
import time
from pathlib import Path

from homeport.appmaster.environment.pack import remove_unfinished, remove_unused

HOUR_S = 3600


def _make(folder: Path, name: str, *, hours: int) -> None:
    """An archive and its tree, and the tree of one from elsewhere, used so many hours ago."""
    used = time.time() - hours * HOUR_S
    (folder / f"homeport-{name}.tar.gz").touch()
    for tree in (name, f"unpacked-{name}"):
        (folder / tree).mkdir()
        (folder / tree / "file").touch()
        os.utime(folder / tree, (used, used))
    os.utime(folder / f"homeport-{name}.tar.gz", (used, used))


def test_the_four_used_last_stay(tmp_path: Path) -> None:
    """However young the others are: each takes 2 GB."""
    for number in (3, 1, 6, 2, 5, 4):
        _make(tmp_path, str(number), hours=number)
    remove_unused(tmp_path)
    stay = {f"{form}{n}{end}" for n in "1234" for form, end in _FORMS}
    assert {p.name for p in tmp_path.iterdir()} == stay


def test_what_was_not_used_in_a_week_goes(tmp_path: Path) -> None:
    """However few there are."""
    _make(tmp_path, "new", hours=6 * 24)
    _make(tmp_path, "old", hours=8 * 24)
    remove_unused(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {f"{form}new{end}" for form, end in _FORMS}


def test_what_killed_commands_have_begun_goes(tmp_path: Path) -> None:
    """Of whatever environment; what run-job may unpack now stays for a day."""
    _make(tmp_path, "new", hours=1)
    for name in ("partial", "dc2222ce451285c3.partial", ".unpacking-new", ".unpacking-old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "homeport-1.tar.partial").touch()
    (tmp_path / "1.member").touch()
    used = time.time() - 25 * HOUR_S
    os.utime(tmp_path / ".unpacking-old", (used, used))
    remove_unfinished(tmp_path)
    stay = {f"{form}new{end}" for form, end in _FORMS}
    assert {p.name for p in tmp_path.iterdir()} == {*stay, ".unpacking-new", "1.member"}


_FORMS = (("homeport-", ".tar.gz"), ("", ""), ("unpacked-", ""))
