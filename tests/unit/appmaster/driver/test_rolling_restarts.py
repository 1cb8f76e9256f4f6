"""The former values of a rolling restart that goes back are written, and not given up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient, StreamNews
from homeport.appmaster.driver.event_queue import EventQueue
from homeport.appmaster.driver.rollouts.rollout import Surroundings
from homeport.appmaster.driver.rollouts.rollouts import RollingRestarts
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager
from homeport.job_coordinator.model.upgrade import (
    SUBJECT,
    RollingRestart,
    UpgradePhase,
    UpgradeState,
)

STATE = UpgradeState(
    "configuration 2", "app", "JobModel 2", "JobModel 1", 1000, UpgradePhase.BACK, subject=SUBJECT
)
GOES_BACK = RollingRestart(STATE, 2, 2, None, {"my.key": "4"})


class Client:
    """What is written; Kafka takes nothing while it ``is_away``."""

    def __init__(self) -> None:
        self.is_away = True
        self.written: list[CoordinatorStreamMessage] = []

    async def append(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """The records are in the stream."""
        if self.is_away:
            raise UnavailableError("Kafka is away")
        self.written += messages


def news(value: str) -> StreamNews:
    """The stream has this value of the key."""
    return StreamNews(Config({"my.key": value}), {}, {}, {}, {})


async def test_former_values_that_kafka_did_not_take_are_written_again(tmp_path: Path) -> None:
    """Once they are taken nothing more is written, until the stream has something else."""
    client, stream = Client(), InMemoryCoordinatorStream()
    stream.write([RollingRestartManager.message(GOES_BACK)])
    stream.catch_up()
    driver = Surroundings(
        cast("CoordinatorStreamClient", client),
        EventQueue(),
        "app",
        HistoryWriter(tmp_path / "history", "driver", "nm1", 64),
        lambda: (cast("AllocatorState", None), True),
        JobModelStore(tmp_path),
        lambda _: None,
    )
    rolling = RollingRestarts(stream, driver, lambda: False)
    rolling.heard(news("5"))
    with pytest.raises(UnavailableError):
        await rolling.prepared()
    client.is_away = False
    assert await rolling.prepared()
    assert [(m.key, m.value("value")) for m in client.written] == [("my.key", "4")]
    assert not await rolling.prepared()
    rolling.heard(news("6"))
    assert await rolling.prepared()
    rolling.heard(news("4"))
    assert not await rolling.prepared()
