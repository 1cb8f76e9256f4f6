"""The leader's coordinator stream stays open from one computation to the next."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.container.standalone import planner
from homeport.container.standalone.planner import KeptStream

CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "a:1",
    }
)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that reach Kafka, in their order."""
    found: list[str] = []

    class Store:
        @classmethod
        def of(cls, _config: Config, *, source: str) -> Store:
            found.append(f"made by {source}")
            return cls()

        def connect(self) -> None:
            found.append("connect")

        def bootstrap(self) -> None:
            found.append("read")
            if found.count("read") == 3:
                raise UnavailableError("Kafka is away")

        def close(self) -> None:
            found.append("close")

    admin = SimpleNamespace(ensure=lambda _spec: found.append("ensure"))
    monkeypatch.setattr(planner, "CoordinatorStreamStore", Store)
    monkeypatch.setattr(planner, "TopicAdmin", lambda _system: admin)
    return found


def test_a_further_read_needs_no_further_clients(said: list[str]) -> None:
    """Until it is closed, as after a fault; a second close does nothing."""
    stream = KeptStream(CONFIG)
    assert stream.read() is stream.read()
    opened = ["ensure", "made by homeport", "connect", "read"]
    assert said == [*opened, "read"]
    with pytest.raises(UnavailableError):
        stream.read()
    stream.close()
    stream.close()
    assert not stream.is_open
    assert said[-2:] == ["read", "close"]
    stream.read()
    assert said[-4:] == opened
