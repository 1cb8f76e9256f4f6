"""Clones that share an engine: what one of them still needs, another does not stop."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_cluster import engine


def test_an_engine_in_use_is_not_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone that still fetches has no container yet; afterwards the engine may end."""
    socket = engine._socket(tmp_path)
    socket.parent.mkdir(parents=True)
    socket.touch()
    monkeypatch.setattr(engine.Engine, "call", lambda *_, **__: pytest.fail("it asks the engine"))
    with engine.in_use(tmp_path), engine.in_use(tmp_path):
        engine.stop_own(tmp_path, print)
    assert socket.exists()
    with pytest.raises(pytest.fail.Exception, match="it asks the engine"):
        engine.stop_own(tmp_path, print)
