"""Properties files and overrides; the corners of Java's format, which an integration test shows."""

from __future__ import annotations

import os
from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError, WireError
from homeport.config.loading.loader import load
from homeport.config.loading.properties_format import parse_properties
from homeport.config.settings.sections import SystemConfig


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
        (f"{'a' * 300}.py", "it cannot be read: File name too long"),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb: 2\nc 3\nd\te\nf", {"a": "1", "b": "2", "c": "3", "d": "e", "f": ""}),
        ("a = b = c", {"a": "b = c"}),
        ("a : = b", {"a": "= b"}),
        ("a=value with blanks behind  \t\n", {"a": "value with blanks behind  \t"}),
        ("a=1\ra=2\r\na=3", {"a": "3"}),
        ("# a=1\n  ! b=2\n\n \t\f\nc=#3", {"c": "#3"}),
        ("a=1\\\n   2\\\r\n\t3", {"a": "123"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("# no continuation \\\na=1", {"a": "1"}),
        ("a=even\\\\\nb=1", {"a": "even\\", "b": "1"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("\\\n#a\nb=1", {"b": "1"}),
        ("a=1\\", {"a": "1"}),
        ("\\\n", {"": ""}),
        ("=x", {"": "x"}),
        (r"a\ b\=\:\#=c\td\ne\\f\z", {"a b=:#": "c\td\ne\\fz"}),
        (r"\u0061=\u00E4\ud83d\ude00", {"a": "ä😀"}),
        ("größe=😀", {"größe": "😀"}),
        ("a=x\u2028y\x85z\x0b", {"a": "x\u2028y\x85z\x0b"}),
        (r"a=\\u12", {"a": r"\u12"}),
        ("", {}),
    ],
)
def test_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    """Separators, blanks, comments, continuations, escapes and line ends, as Java has them."""
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=1\nb=\\u12 secret", "line 2 holds a malformed \\u escape"),
        ("a=\\\n\\\n\\\\\\uwxyz", "line 1 holds a malformed \\u escape"),
        ("a=1\n\nb=\\ud83d", "line 3 holds half of a surrogate pair"),
        ("a=\\ude00\\ud83d", "line 1 holds half of a surrogate pair"),
    ],
)
def test_a_malformed_entry_is_reported_with_its_line(text: str, message: str) -> None:
    """The line's number is named, and nothing of its text, which may be a secret."""
    with pytest.raises(WireError) as caught:
        parse_properties(text)
    assert str(caught.value) == message


@given(st.dictionaries(st.text(), st.text()), st.booleans())
def test_written_keys_and_values_are_read_again(values: dict[str, str], ascii_only: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    """Any keys and values, as another implementation of the format writes them."""
    text = javaproperties.dumps(values, ensure_ascii=ascii_only)
    assert parse_properties(text) == values


def test_brokers_that_no_key_names_are_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the default system alone; what a file or an override says stands."""
    key, other = (f"systems.{s}.consumer.bootstrap.servers" for s in ("kafka", "other"))
    named = [
        key,
        key.replace("consumer", "producer"),
        "systems.kafka.producer.metadata.broker.list",
    ]
    path = str(_file(tmp_path, b"job.default.system=kafka\nsystems.other.samza.factory=kafka\n"))
    monkeypatch.delenv("HOMEPORT_BOOTSTRAP_SERVERS", raising=False)
    assert key not in load(path)
    monkeypatch.setenv("HOMEPORT_BOOTSTRAP_SERVERS", " ")
    assert key not in load(path)
    monkeypatch.setenv("HOMEPORT_BOOTSTRAP_SERVERS", "local:1")
    assert load(path)[key] == "local:1"
    assert other not in load(path)
    assert load(path, [f"{key}="])[key] == "local:1"
    for name in named:
        found = load(path, [f"{name}=mine:1"])
        assert (found[name], found.get(key, "mine:1")) == ("mine:1", "mine:1")
    assert load(str(_file(tmp_path, b"a=1\n"))) == Config({"a": "1"})


def test_brokers_that_a_rewriter_names_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any form; a rewriter that asks Kafka before has those of the environment."""
    prefix = "job.config.rewriter"
    lines = [
        "job.default.system=kafka",
        "job.config.rewriters=all,env",
        f"{prefix}.all.class=regex-topics",
        f"{prefix}.all.regex=a.*",
        f"{prefix}.all.system=kafka",
        f"{prefix}.env.class=environment",
    ]
    path = str(_file(tmp_path, "\n".join(lines).encode()))
    asked: list[str] = []

    def topics_of(config: Config, system: str) -> list[str]:
        asked.append(SystemConfig.of(config, system).bootstrap_servers)
        return ["a1"]

    monkeypatch.setenv("HOMEPORT_BOOTSTRAP_SERVERS", "local:1")
    found = load(path, topics_of=topics_of)
    assert (found["task.inputs"], asked) == ("kafka.a1", ["local:1"])
    assert SystemConfig.of(found, "kafka").bootstrap_servers == "local:1"
    for name in ("consumer.bootstrap.servers", "producer.bootstrap.servers"):
        variable = f"SAMZA_SYSTEMS_KAFKA_{name.upper().replace('.', '_')}"
        with monkeypatch.context() as patch:
            patch.setenv(variable, "mine:1")
            system = SystemConfig.of(load(path, topics_of=topics_of), "kafka")
            assert system.consumer["bootstrap.servers"] == "mine:1"
            assert system.producer["bootstrap.servers"] == "mine:1"
