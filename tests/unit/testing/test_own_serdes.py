"""A serde of the job's own: bytes that it cannot read, and faults of its own."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest

from homeport.config.errors import HomeportError, WireError
from homeport.container.serde.serdes import SerdeFailedError
from homeport.testing import TestRunner
from tests.unit.testing.counting_job import task_of

CONFIG = {
    "task.inputs": "kafka.in",
    "systems.kafka.samza.msg.serde": "own",
    "serializers.registry.own.class": f"{__name__}:Own",
    "task.drop.deserialization.errors": "true",
}


class Own:
    """Raises what the test wants."""

    error: Exception = ValueError()

    def to_bytes(self, value: bytes) -> bytes:
        """As it is."""
        return value

    def from_bytes(self, data: bytes) -> Any:  # noqa: ANN401, ARG002 - of a serde, which raises
        """Raises."""
        raise self.error


_Nothing = task_of(lambda *_: None)


UNREADABLE = [
    ValueError("no"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
    EOFError("short"),
    RecursionError("deep"),
    struct.error("short"),
    zlib.error("no"),
    WireError("no"),
]
BUGS = [
    ZeroDivisionError("division by zero"),
    TypeError("no"),
    KeyError("field"),
    AttributeError("none"),
    OSError("the registry is away"),
    RuntimeError("no"),
    HomeportError("no"),
]


def _kind(error: Exception) -> str:
    return type(error).__name__


@pytest.mark.parametrize("error", UNREADABLE, ids=_kind)
def test_bytes_that_it_cannot_read_are_a_bad_record(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped where the configuration says so."""
    monkeypatch.setattr(Own, "error", error)
    with TestRunner(CONFIG, task=_Nothing) as runner:
        runner.send_bytes("kafka.in", value=b"x")
        assert runner.run() == 1


@pytest.mark.parametrize("error", BUGS, ids=_kind)
def test_a_fault_of_its_own_drops_nothing(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says nothing of the record: the container fails, and names it."""
    monkeypatch.setattr(Own, "error", error)
    with TestRunner(CONFIG, task=_Nothing) as runner:
        runner.send_bytes("kafka.in", value=b"x")
        with pytest.raises(SerdeFailedError) as failed:
            runner.run()
        assert runner.output("kafka.dead") == []
    message = str(failed.value)
    assert message.startswith(
        f"input kafka.in partition 0 offset 0: its value: the serde '{__name__}"
    )
    assert f"failed on b'x': {_kind(error)}: " in message
    assert "let it raise ValueError where the bytes are not of it" in message
