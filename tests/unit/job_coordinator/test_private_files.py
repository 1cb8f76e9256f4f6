"""Files that hold secrets: no other user can read, redirect or create them first."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from another_user import unprivileged, without_mask

from homeport.cli.yarn.preflight import check_token_folder
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.private_files import private_folder

NAME, SECRET = "application_1_1", b"secret"


def _write(folder: Path, data: bytes = SECRET) -> Path:
    with private_folder(folder) as own:
        own.write(NAME, data)
    return folder / NAME


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_folder_and_file_are_their_owners_alone(tmp_path: Path) -> None:
    """Both are made with modes 0700 and 0600, whatever the process's mask leaves to others."""
    with without_mask():
        path = _write(tmp_path / "a" / "tokens")
    assert (_mode(path.parent), _mode(path)) == (0o700, 0o600)
    assert path.read_bytes() == SECRET
    path.parent.chmod(0o755)
    _write(path.parent)
    assert _mode(path.parent) == 0o700, "what others could list is closed"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A symlink at the file's place is replaced; what it names keeps its content."""
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    (tokens / NAME).symlink_to(other)
    path = _write(tokens)
    assert other.read_bytes() == b"mine"
    assert not path.is_symlink()
    assert (_mode(path), path.read_bytes()) == (0o600, SECRET)


def test_an_existing_file_is_not_taken(tmp_path: Path) -> None:
    """An earlier file is replaced: its mode and other names of it have none of the new content."""
    old = tmp_path / NAME
    old.write_bytes(b"a longer old content")
    old.chmod(0o666)
    (tmp_path / "second name").hardlink_to(old)
    path = _write(tmp_path)
    assert (_mode(path), path.read_bytes()) == (0o600, SECRET)
    assert (tmp_path / "second name").read_bytes() == b"a longer old content"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    """One line names folder, mode and remedy; nothing is written."""
    tmp_path.chmod(mode)
    with pytest.raises(UnavailableError) as caught:
        _write(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} cannot hold this job's token: other users can write there (mode {mode:04o}): "
        "let HOMEPORT_CACHE_DIR name a folder of your own"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_user_is_refused() -> None:
    """Even one that this process may write: its owner could read and exchange what is there."""
    with unprivileged(), pytest.raises(UnavailableError, match="it belongs to user 0, and"):
        _write(Path("/usr"))


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """The folder itself is no symlink, which would choose where the secret goes."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tokens").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnavailableError, match="it is a link"):
        _write(tmp_path / "tokens")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_cannot_be_written_is_refused_with_the_systems_reason(tmp_path: Path) -> None:
    """A file in place of the folder, a folder in place of the file: both stay."""
    (tmp_path / "tokens").write_bytes(b"")
    with pytest.raises(UnavailableError, match=r"tokens cannot hold this job's token: \w"):
        _write(tmp_path / "tokens")
    (tmp_path / NAME).mkdir()
    with pytest.raises(UnavailableError, match=f"{NAME} cannot be written: Is a directory"):
        _write(tmp_path)


def test_run_job_refuses_before_it_writes_anything(tmp_path: Path) -> None:
    """Its check of the cache folder makes the same refusal, and leaves a good folder as it is."""
    environment = {"HOMEPORT_CACHE_DIR": str(tmp_path)}
    check_token_folder(environment)
    (tmp_path / "tokens").chmod(0o777)
    with pytest.raises(UnavailableError, match="other users can write there"):
        check_token_folder(environment)
