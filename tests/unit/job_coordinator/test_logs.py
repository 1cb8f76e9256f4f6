"""What a process logs: as text or as JSON, from a level on that may change."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator, Mapping

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.log_section import LogConfig
from homeport.job_coordinator import logs


@pytest.fixture(autouse=True)
def root_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The root logger has its handlers and its level again; the facts are none of another test."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    monkeypatch.setattr(logs, "_facts", {})
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])


def lines(stream: io.StringIO) -> list[str]:
    """What was logged."""
    return stream.getvalue().splitlines()


def begun(variables: Mapping[str, str]) -> io.StringIO:
    """Where a process with these variables logs to."""
    stream = io.StringIO()
    logging.getLogger().handlers.clear()  # pytest's own come with the test
    logs.begin(stream, variables)
    return stream


def test_a_message_is_one_line_of_text() -> None:
    """Without variables; DEBUG is left out."""
    stream = begun({})
    logging.getLogger("driver").info("settled in %d rounds", 3)
    logging.getLogger("driver").debug("unseen")
    (line,) = lines(stream)
    assert line.endswith(" INFO driver: settled in 3 rounds")


def test_half_a_surrogate_pair_is_written_as_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a message, in what a task prints, and in the cause of an end, which comes last."""
    written = {name: io.TextIOWrapper(io.BytesIO(), "utf-8") for name in ("stdout", "stderr")}
    for name, stream in written.items():
        monkeypatch.setattr(f"sys.{name}", stream)
    logging.getLogger().handlers.clear()
    logs.begin(written["stdout"], {})
    logging.getLogger("driver").info("got %s", "\ud83d")
    for stream in written.values():
        stream.write("said \ud83d\n")
        stream.flush()
    found = {name: stream.buffer.getvalue().decode() for name, stream in written.items()}
    assert found["stdout"].endswith(" INFO driver: got \\ud83d\nsaid \\ud83d\n")
    assert found["stderr"] == "said \\ud83d\n"


def test_a_message_is_one_object_with_what_is_known_of_it() -> None:
    """Facts of the process, and those of the message, which win; a traceback stays in its line."""
    variables = LogConfig.of(Config({"job.log.format": "json"})).variables()
    stream = begun(variables)
    logging.getLogger("driver").info("a\nb", extra={"facts": {"decision": "X"}})
    logs.add_facts(processor="7", epoch=2, host="h1")
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("c").exception("it failed")
    first, second = map(json.loads, lines(stream))
    assert (first["message"], first["level"], first["logger"]) == ("a\nb", "INFO", "driver")
    assert first["decision"] == "X"
    assert first["time"][10] == "T"
    assert first["time"].endswith("Z")
    assert "processor" not in first
    assert (second["processor"], second["epoch"], second["host"]) == ("7", 2, "h1")
    assert "ValueError: no" in second["exception"]


def test_the_level_changes_and_others_stay_quiet() -> None:
    """Of libraries that log each call only what is worse; with a higher level that too."""
    stream = begun(LogConfig.of(Config({"job.log.level": "DEBUG"})).variables())
    logging.getLogger("py4j").info("unseen")
    logging.getLogger("driver").debug("one")
    logs.set_level("ERROR")
    logging.getLogger("driver").warning("unseen")
    logging.getLogger("py4j").warning("unseen")
    logging.getLogger("py4j").error("two")
    assert [line.rpartition(": ")[2] for line in lines(stream)] == ["one", "two"]


@pytest.mark.parametrize(("key", "value"), [("job.log.format", "xml"), ("job.log.level", "chatty")])
def test_another_value_is_refused(key: str, value: str) -> None:
    """With the values that there are."""
    with pytest.raises(ConfigError, match=f"{key} = '{value}': it must be"):
        LogConfig.of(Config({key: value}))
