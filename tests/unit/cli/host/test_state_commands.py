"""``homeport state`` where it asks no Kafka: what is dumped, compared, and where it is restored."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest
from another_user import open_folder, unprivileged
from json_answers import require_promised

from homeport.cli.host.state_dump import Query, lines
from homeport.cli.host.state_restore import MARK, claim
from homeport.cli.main import run
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError, StoreError
from homeport.config.settings.sections import JobConfig
from homeport.config.settings.serde_names import SchemaSerde
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.store_meta import StoreMeta, meta_text
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.rocksdb.rocksdb_view import RocksDbView
from homeport.container.serde.evolution.marked_avro import mark_of
from homeport.container.serde.forms import form_of, forms_of, in_brief
from homeport.container.serde.serdes import serde
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import NO_WAIT

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
    output = capsys.readouterr()
    assert output.out.splitlines() == ["a = 1", "b = 2"]
    assert output.err == f"from {path}, flushed up to changelog offset 41\n"
    copy = path.rename(tmp_path / "copy")
    run(["state", "dump", "counts", named, f"--dir={copy}", "--json", "--prefix=b"])
    printed = capsys.readouterr().out
    require_promised(["state", "dump"], printed)
    assert json.loads(printed) == {"key": "b", "value": 2}


AVRO = """
stores.counts.msg.serde=rec
serializers.registry.rec.class=avro
serializers.registry.rec.schema=%s
"""


def test_a_value_of_another_schema_is_dumped_as_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values without a mark are of the schema in STORE-META; the schemas of others are in Kafka."""
    path = _made(tmp_path, "Partition_0")
    first, second = SchemaSerde("avro", "rec", '"int"'), SchemaSerde("avro", "rec", '"long"')
    store = RocksDbStore(path, RocksDbMemory(8 << 20, 1))
    marked = mark_of(form_of(second)) + b"\x04"
    store.write({b"a": b"\x02", b"b": marked}, 42)
    store.flush()
    store.close()
    forms = in_brief(forms_of(("string", first)))
    meta = StoreMeta("log", "id", (), "g", ClockReading(0), forms=forms)

    def dumped(schema: str) -> list[str]:
        file = tmp_path / "avro.properties"
        file.write_text(PROPERTIES + AVRO % schema, encoding="utf-8")
        run(["state", "dump", "counts", f"--dir={path}", f"--config-path={file}"])
        return capsys.readouterr().out.splitlines()

    assert dumped('"long"') == ["a = 1", f"b = 0x{marked.hex()} (not of the serde 'avro')"]
    directory = StoreDirectory(path, NO_WAIT)
    directory.write_text("STORE-META", meta_text(meta))
    directory.release()
    assert dumped('"int"') == ["a = 1", f"b = 0x{marked.hex()} (not of the serde 'avro')"]
    assert dumped('"long"') == ["a = 0x02 (not of the serde 'avro')", "b = 2"]
    (path / "STORE-META").write_bytes(b"damaged")
    assert dumped('"long"')[0] == "a = 1"


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
    output = capsys.readouterr()
    assert "position 41: equal; 1 key compared with" in output.out
    assert output.err == "1 directory equal\n"
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


@pytest.mark.parametrize("at", ["base", "dir", "store", "verify"])
def test_a_folder_of_another_user_gives_one_line(
    at: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a job whose folder is its user's alone; by --base it names the user for the command."""
    with open_folder() as base:
        (base / "mine.properties").write_text(PROPERTIES, encoding="utf-8")
        named = f"--config-path={base / 'mine.properties'}"
        path = _made(base, "Partition_0", a=1)
        (path if at == "store" else base / "mine-1").chmod(0o700)
        words = {
            "base": ["dump", "counts", "Partition 0", named, f"--base={base}"],
            "dir": ["dump", "counts", named, f"--dir={path}"],
            "store": ["dump", "counts", named, f"--dir={path}"],
            "verify": ["verify", named, f"--base={base}", f"--against={base}"],
        }[at]
        with unprivileged(), pytest.raises(HomeportError) as caught:
            run(["state", *words])
        unreadable = {"dir": "it cannot be read", "store": f"{path}: it cannot be read: Permission"}
    assert unreadable.get(at, f"; run this as user {os.geteuid()}") in str(caught.value)
    assert capsys.readouterr().out == ""


def test_a_job_folder_that_is_a_link_is_not_followed(tmp_path: Path, named: str) -> None:
    """By no command: what it names may be another job's, or another user's."""
    _made(tmp_path / "elsewhere", "Partition_0", a=1)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "mine-1").symlink_to(tmp_path / "elsewhere" / "mine-1")
    words = ["dump", "counts", "Partition 0", named, f"--base={tmp_path / 'base'}"]
    with pytest.raises(HomeportError, match="its mine-1 is a link, which is not followed"):
        run(["state", *words])


def _view(path: Path, *pairs: tuple[bytes, bytes]) -> RocksDbView:
    store = RocksDbStore(path, RocksDbMemory(8 << 20, 1))
    store.write(dict(pairs), 1)
    store.flush()
    store.close()
    return RocksDbView(path)


PAIRS = ((b"a", b"text"), (b"ab", b"\x00\xff"), (b"b\n", b"two\nlines"))


def test_bytes_are_text_where_they_are_and_digits_else(tmp_path: Path) -> None:
    """No control character and no broken text reaches a terminal."""
    with closing(_view(tmp_path, *PAIRS)) as view:
        printed = list(lines(view, (serde("string"), serde("bytes")), Query(), None, as_json=False))
    assert printed == ["a = text", "ab = 0x00ff", '"b\\n" = 0x74776f0a6c696e6573']


def test_json_keeps_every_byte(tmp_path: Path) -> None:
    """Bytes are base64; what the serde cannot read stands beside them."""
    with closing(_view(tmp_path, *PAIRS)) as view:
        printed = list(lines(view, (serde("bytes"), serde("json")), Query(), 2, as_json=True))
    assert [json.loads(line) for line in printed] == [
        {"key": {"bytes": key}, "value": {"bytes": value, "fault": "not of the serde 'json'"}}
        for key, value in (("YQ==", "dGV4dA=="), ("YWI=", "AP8="))
    ]


def test_a_prefix_and_a_key_choose(tmp_path: Path) -> None:
    """The prefix is one of the key's bytes; a key that is not there prints nothing."""
    store = (serde("string"), serde("bytes"))
    string = serde("string")
    with closing(_view(tmp_path, *PAIRS)) as view:
        for query, count in (
            (Query.of(string, None, "a", is_hex=False), 2),
            (Query.of(string, None, "6162", is_hex=True), 1),
            (Query.of(string, "a", None, is_hex=False), 1),
            (Query.of(string, "z", None, is_hex=False), 0),
        ):
            assert len(list(lines(view, store, query, None, as_json=False))) == count


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("string", "ü", "ü".encode()),
        ("bytes", "ü", "ü".encode()),
        ("integer", "7", b"\x00\x00\x00\x07"),
        ("long", "-1", b"\xff" * 8),
        ("double", "0.5", b"\x3f\xe0" + bytes(6)),
        ("json", '{"a": 1}', b'{"a":1}'),
    ],
)
def test_a_key_is_typed_as_its_serde_has_it(name: str, text: str, key: bytes) -> None:
    """A number as a number, JSON as JSON."""
    assert Query.of(serde(name), text, None, is_hex=False).key == key


@pytest.mark.parametrize(
    ("name", "key", "prefix", "rule"),
    [
        ("long", "x", None, "no key of the serde 'long'"),
        ("integer", "5000000000", None, "no key of the serde 'integer'"),
        ("json", "{", None, "no key of the serde 'json'"),
        ("long", None, "1", "are no texts"),
        ("string", "a", "a", "one pair alone"),
        ("string", "hex 0g", None, "such as 00ff"),
    ],
)
def test_a_malformed_key_is_refused(
    name: str, key: str | None, prefix: str | None, rule: str
) -> None:
    """In one line that names the option."""
    is_hex = key is not None and key.startswith("hex ")
    with pytest.raises(ConfigError, match=rule):
        Query.of(serde(name), key and key.removeprefix("hex "), prefix, is_hex=is_hex)


def _job(name: str) -> JobConfig:
    return JobConfig.of(Config({"job.name": name, "job.default.system": "kafka"}))


def test_a_new_folder_is_taken_and_known_again(tmp_path: Path) -> None:
    """One that is empty too; what a restore has begun there is its own."""
    folder = tmp_path / "a" / "b"
    assert claim(folder, _job("mine")) is False
    (folder / "mine-1").mkdir()
    assert claim(folder, _job("mine")) is True
    assert claim(tmp_path / "a" / "c", _job("mine")) is False


def test_a_folder_with_anything_else_is_left_alone(tmp_path: Path) -> None:
    """Such as one that containers keep their state in, or another job's restore."""
    used = tmp_path / "used"
    (used / "mine-1" / "counts").mkdir(parents=True)
    with pytest.raises(ConfigError, match="not empty, and no restore of this job made it"):
        claim(used, _job("mine"))
    assert [entry.name for entry in used.iterdir()] == ["mine-1"]
    claim(tmp_path / "theirs", _job("theirs"))
    with pytest.raises(ConfigError, match="the restored state of another job"):
        claim(tmp_path / "theirs", _job("mine"))


def test_a_path_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    """A file, or a mark that is cut short."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="it cannot be used"):
        claim(tmp_path / "file", _job("mine"))
    (tmp_path / MARK).write_text('{"job.na')
    with pytest.raises(ConfigError, match="is damaged"):
        claim(tmp_path, _job("mine"))
