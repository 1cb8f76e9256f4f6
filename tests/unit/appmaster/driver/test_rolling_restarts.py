"""The former values of a rolling restart that goes back are written, and not given up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient, StreamNews
from homeport.appmaster.driver.event_queue import EventQueue
from homeport.appmaster.driver.rollouts.rolling_restarts import RollingRestarts
from homeport.appmaster.driver.rollouts.rollout import Surroundings
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager
from homeport.job_coordinator.model.rolling_restart import SUBJECT, RollingRestart
from homeport.job_coordinator.model.upgrade import UpgradePhase, UpgradeState

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


def news(**values: str) -> StreamNews:
    """The stream has this configuration."""
    return StreamNews(
        Config({name.replace("_", "."): v for name, v in values.items()}), {}, {}, {}, {}
    )


def test_former_values_that_kafka_did_not_take_are_written_again(tmp_path: Path) -> None:
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
    rolling.heard(news(my_key="5"))

    async def written() -> bool:
        try:
            return await rolling.prepared()
        except UnavailableError:
            return False

    assert not asyncio.run(written())
    client.is_away = False
    assert asyncio.run(written())
    assert [(m.key, m.value("value")) for m in client.written] == [("my.key", "4")]
    assert not asyncio.run(written())
    rolling.heard(news(my_key="6"))
    assert asyncio.run(written())
    rolling.heard(news(my_key="4"))
    assert not asyncio.run(written())
