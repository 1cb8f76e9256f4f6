"""What is left of a cluster goes with it, wherever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.job_coordinator.client_files import KeptToken, kept_tokens
from homeport.local_cluster.cluster import sweep
from homeport.local_cluster.layout import Layout


@pytest.mark.parametrize("keep_logs", [False, True])
def test_the_tokens_of_its_applications_go(tmp_path: Path, *, keep_logs: bool) -> None:
    """Its own alone: those of another cluster may live."""
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    for number, name in enumerate(("dev", "other")):
        conf = Layout(tmp_path, name).conf
        kept = KeptToken(f"application_1_{number}", str(conf), ("http://127.0.0.1:1",))
        (tokens / kept.application_id).write_bytes(b"secret")
        (tokens / kept.note_name).write_bytes(kept.note())
    sweep(Layout(tmp_path, "dev"), keep_logs=keep_logs)
    assert [kept.application_id for kept in kept_tokens(tokens)] == ["application_1_1"]
    assert sorted(path.name for path in tokens.iterdir()) == [
        "application_1_1",
        "application_1_1.cluster",
    ]
