"""The outside judge of the versions of adjunct stores that batches have read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.scripts.test_check_history import History

RULE = "adjunct stores: one whole version in a batch, none older"
STORE = "airlines/container-0"
PARTITION = "kafka.airlines.0"


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Epoch 1 on nm1 reads versions 1 and 2 and is killed; epoch 2 is on nm2."""
    history = History(tmp_path)
    history.start(100, ("0", 1))
    read(history, 150, 1, batch=1, end=50)
    history.transaction(200, ("0", 1), (0, 9))
    read(history, 250, 2, batch=7, end=100)
    history.transaction(300, ("0", 1), (10, 19))
    history.stop(400, ("0", 1))
    history.follow(500, 2, "nm2")
    return history


def read(
    history: History,
    at: int,
    version: int | None,
    *,
    batch: int,
    end: int = 0,
    key: tuple[str, int] = ("0", 1),
    host: str = "nm1",
    **more: Any,  # noqa: ANN401 - fields of JSON
) -> None:
    """A batch reads a version whose end lies before the offset ``end``."""
    parts = {PARTITION: {"next": end, "left": more.pop("left", "ended")}}
    fields: dict[str, Any] = {
        "store": STORE,
        "bootstrap": True,
        "topic_id": "t1",
        "partitions": [PARTITION],
        "parts": {} if version is None else parts,
        **more,
    }
    history.event(
        at, "container", "version-read", key, host, version=version, batch=batch, **fields
    )


def on_nm2(
    history: History,
    version: int | None,
    end: int,
    at: int = 550,
    **more: Any,  # noqa: ANN401 - fields of JSON
) -> None:
    """Epoch 2 reads a version, and commits."""
    read(history, at, version, batch=1, end=end, key=("0", 2), host="nm2", **more)
    history.transaction(600, ("0", 2), (20, 29), "nm2")


@pytest.mark.parametrize(
    ("version", "end", "more"),
    [
        pytest.param(2, 100, {}, id="the same"),
        pytest.param(1, 100, {}, id="the same, counted from where its stream begins now"),
        pytest.param(9, 300, {}, id="a newer one"),
        pytest.param(None, 0, {}, id="none"),
        pytest.param(1, 7, {"topic_id": "t2"}, id="of a topic that was recreated"),
        pytest.param(1, 50, {"bootstrap": False}, id="of a store that nothing waits for"),
        pytest.param(1, 50, {"store": "airlines/container-1"}, id="of another container"),
        pytest.param(1, 50, {"at": 650}, id="which nothing committed has read"),
    ],
)
def test_sound_versions_are_green(
    history: History, version: int | None, end: int, more: dict[str, Any]
) -> None:
    """Versions are compared by where they end in the stream."""
    on_nm2(history, version, end, **more)
    assert history.broken() == []


def test_an_older_version_is_broken(history: History) -> None:
    """Also where its number is a greater one."""
    on_nm2(history, 5, 50)
    assert history.broken() == [RULE]
    assert (
        f"processor 0 epoch 2: {STORE} went back to version 5 at {{'{PARTITION}': 50}}, a batch "
        f"before had read 2 at {{'{PARTITION}': 100}}"
    ) in history.said


def test_an_older_version_on_the_same_host_is_broken_without_bootstrap(history: History) -> None:
    """Its store was there."""
    read(history, 310, 2, batch=8, end=100, bootstrap=False)
    read(history, 320, 1, batch=9, end=50, bootstrap=False)
    history.transaction(330, ("0", 1), (20, 29))
    assert history.broken() == [RULE]
    assert "went back to version 1" in history.said


def test_after_a_reset_any_version_is_the_first(history: History) -> None:
    """The stores are gone with all state."""
    history.event(450, "driver", "state-reset", ("0", 1), pid=1, submission="s")
    on_nm2(history, 1, 50)
    assert history.broken() == []


def test_two_versions_in_one_batch_are_broken(history: History) -> None:
    """Whatever became of the batch."""
    read(history, 350, 3, batch=7, end=150)
    assert history.broken() == [RULE]
    assert f"{STORE}: batch 7 has read version 2 and version 3" in history.said


@pytest.mark.parametrize(
    "more",
    [
        {"left": "open"},
        {"left": "left"},
        {"partitions": [PARTITION, "kafka.airlines.1"]},
        {"parts": {}},
    ],
)
def test_a_version_without_its_end_is_broken(history: History, more: dict[str, Any]) -> None:
    """Each partition must have ended it, by what its store says."""
    on_nm2(history, 3, 150, **more)
    assert history.broken() == [RULE]
    assert "has version 3 read, which kafka.airlines." in history.said
