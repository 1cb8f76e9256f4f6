"""``homeport state dump`` and ``verify --against``, which ask no Kafka: a call, and its lines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from another_user import open_folder, unprivileged
from json_answers import require_promised

from homeport.cli.main import run
from homeport.config.errors import HomeportError, StoreError
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore

PROPERTIES = """
job.name=mine
job.default.system=kafka
stores.counts.factory=rocksdb
stores.counts.key.serde=string
stores.counts.msg.serde=long
"""


@pytest.fixture
def named(tmp_path: Path) -> str:
    """The option that names the job."""
    file = tmp_path / "mine.properties"
    file.write_text(PROPERTIES, encoding="utf-8")
    return f"--config-path={file}"


def _made(base: Path, task: str, **counts: int) -> Path:
    """A store below ``base``, as a container leaves it."""
    path = base / "mine-1" / "counts" / task
    path.mkdir(parents=True)
    store = RocksDbStore(path, RocksDbMemory(8 << 20, 1))
    store.write({key.encode(): n.to_bytes(8) for key, n in counts.items()}, 41)
    store.flush()
    store.close()
    return path


def test_a_store_is_dumped_by_its_tasks_name(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or from a copy anywhere; the position stands beside the answer."""
    path = _made(tmp_path, "Partition_0", a=1, b=2)
    run(["state", "dump", "counts", "Partition 0", named, "--base", str(tmp_path)])
    said = capsys.readouterr()
    assert said.out.splitlines() == ["a = 1", "b = 2"]
    assert said.err == f"from {path}, flushed up to changelog offset 41\n"
    copy = path.rename(tmp_path / "copy")
    run(["state", "dump", "counts", named, f"--dir={copy}", "--json", "--prefix=b"])
    printed = capsys.readouterr().out
    require_promised(["state", "dump"], printed)
    assert json.loads(printed) == {"key": "b", "value": 2}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nope", "Partition 0"], "STORE = 'nope': the job's stores are: counts; name one of"),
        (["counts", "Partition 9"], "TASK = 'Partition 9': there is no directory counts/Parti"),
        (["counts"], "TASK is missing: a store is one of a task; name it, or use --dir"),
        (["counts", "--dir=/nowhere"], "/nowhere: there is no RocksDB store here: no CURRENT"),
    ],
)
def test_a_missing_store_gives_one_line(
    words: list[str], line: str, named: str, tmp_path: Path
) -> None:
    """It says what there is."""
    _made(tmp_path, "Partition_0")
    with pytest.raises(HomeportError) as caught:
        run(["state", "dump", *words, named, "--base", str(tmp_path)])
    assert str(caught.value).startswith(line)


def test_a_store_in_memory_has_nothing_to_dump(named: str, tmp_path: Path) -> None:
    """The line names the kind of the store."""
    path = _made(tmp_path, "Partition_0")
    options = (f"--dir={path}", "--config=stores.counts.factory=in-memory")
    with pytest.raises(StoreError, match="a store of the kind in-memory has no files"):
        run(["state", "dump", "counts", named, *options])


def test_a_host_without_a_folder_gives_one_line(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the environment nor the configuration has one; or it is not there."""
    monkeypatch.delenv("LOGGED_STORE_BASE_DIR", raising=False)
    with pytest.raises(HomeportError, match=r"nor job\.logged\.store\.base\.dir says"):
        run(["state", "dump", "counts", "Partition 0", named])
    monkeypatch.setenv("LOGGED_STORE_BASE_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(HomeportError, match=r"BASE_DIR = .*: it is no folder; name one"):
        run(["state", "dump", "counts", "Partition 0", named])


def test_an_unreadable_store_gives_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The path, and why."""
    with open_folder() as base:
        (base / "mine.properties").write_text(PROPERTIES, encoding="utf-8")
        named = f"--config-path={base / 'mine.properties'}"
        path = _made(base, "Partition_0", a=1)
        path.chmod(0o700)
        words = ["state", "dump", "counts", named, f"--dir={path}"]
        with unprivileged(), pytest.raises(HomeportError) as caught:
            run(words)
        assert str(caught.value) == f"{path}: it cannot be read: Permission denied"
    assert capsys.readouterr().out == ""


def test_two_hosts_directories_are_compared(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task's on one host with its standby's on whichever other has it; the exit code says so."""
    own, second, third = (tmp_path / name for name in ("nm1", "nm2", "nm3"))
    _made(own, "Partition_0", a=1)
    _made(own, "Partition_1", b=1, c=1)
    _made(second, "Partition_1", b=1, c=2)
    _made(third, "Partition_0", a=1)
    others = [f"--against={second}", f"--against={third}"]
    run(["state", "verify", named, f"--base={own}", *others, "--task", "Partition 0"])
    said = capsys.readouterr()
    assert "position 41: equal; 1 key compared with" in said.out
    assert said.err == "1 directory equal\n"
    with pytest.raises(HomeportError, match="1 of 2 directories not equal"):
        run(["state", "verify", named, f"--base={own}", *others])
    assert "  c: another value" in capsys.readouterr().out
    with pytest.raises(HomeportError, match="no such directory was found"):
        run(["state", "verify", named, f"--base={own}", *others, "--store", "other"])
    with pytest.raises(HomeportError, match="1 of 1 directory not equal"):
        run(["state", "verify", named, f"--base={third}", f"--against={second}", "--json"])
    printed = capsys.readouterr().out
    require_promised(["state", "verify"], printed)
    (row,) = map(json.loads, printed.splitlines())
    assert (row["is_equal"], row["task"]) == (False, "Partition_0")
    assert row["fault"] == f"there is no {second / 'mine-1' / 'counts' / 'Partition_0'}"


@pytest.mark.parametrize("at", ["base", "dir", "verify"])
def test_a_folder_of_another_user_gives_one_line(at: str) -> None:
    """Of a job whose folder is its user's alone; by --base it names the user for the command."""
    with open_folder() as base:
        (base / "mine.properties").write_text(PROPERTIES, encoding="utf-8")
        named = f"--config-path={base / 'mine.properties'}"
        path = _made(base, "Partition_0", a=1)
        (base / "mine-1").chmod(0o700)
        words = {
            "base": ["dump", "counts", "Partition 0", named, f"--base={base}"],
            "dir": ["dump", "counts", named, f"--dir={path}"],
            "verify": ["verify", named, f"--base={base}", f"--against={base}"],
        }[at]
        with unprivileged(), pytest.raises(HomeportError) as caught:
            run(["state", *words])
    wanted = "it cannot be read" if at == "dir" else f"; run this as user {os.geteuid()}"
    assert wanted in str(caught.value)


def test_a_job_folder_that_is_a_link_is_not_followed(tmp_path: Path, named: str) -> None:
    """By no command: what it names may be another job's, or another user's."""
    _made(tmp_path / "elsewhere", "Partition_0", a=1)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "mine-1").symlink_to(tmp_path / "elsewhere" / "mine-1")
    words = ["dump", "counts", "Partition 0", named, f"--base={tmp_path / 'base'}"]
    with pytest.raises(HomeportError, match="its mine-1 is a link, which is not followed"):
        run(["state", *words])
