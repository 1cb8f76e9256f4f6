"""What the AM's programs leave behind: exit codes, files that they close, files of their own."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.attempt.supervision import EXIT_UNFIT_HOST
from homeport.appmaster.programs import application_master, lease_keeper
from homeport.appmaster.programs.am_container import AmContainer
from homeport.appmaster.programs.supervisor import Process
from homeport.config.config import Config
from homeport.config.errors import CannotListenError, ConfigError, UnavailableError


def _raises(error: Exception) -> Any:  # noqa: ANN401 - stands for any function
    def function(*_: object, **__: object) -> None:
        raise error

    return function


@pytest.mark.parametrize("program", [lease_keeper, application_master])
@pytest.mark.parametrize(
    ("error", "port", "code"),
    [
        (CannotListenError("no port"), None, EXIT_UNFIT_HOST),
        (CannotListenError("no port"), 4711, 1),
        (UnavailableError("no Kafka"), None, 1),
    ],
)
def test_only_a_port_that_was_never_had_says_that_the_host_is_not_fit(
    monkeypatch: pytest.MonkeyPatch,
    program: ModuleType,
    error: Exception,
    port: int | None,
    code: int,
) -> None:
    """Its own earlier port gets as many starts as any other fault; the cause is said."""
    causes: list[str] = []
    heartbeat = SimpleNamespace(
        port=port, await_turn=lambda: None, start=lambda: None, log_cause=causes.append
    )
    monkeypatch.setattr(program, "Heartbeat", lambda _: heartbeat)
    container = SimpleNamespace(submission=SimpleNamespace(config=None))
    monkeypatch.setattr(AmContainer, "read", lambda *_: container)
    monkeypatch.setattr(program, "await_kafka", _raises(error))
    if program is application_master:
        found = application_master.main(lambda _: cast("Any", (None, "")))
    else:
        found = lease_keeper.main()
    assert (found, causes) == (code, [str(error)])


def test_the_history_of_a_begin_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no driver follows; one that does has files of its own."""
    done: list[str] = []
    history = SimpleNamespace(close=lambda: done.append("closed"))
    config = Config({"job.name": "j", "job.default.system": "kafka"})
    monkeypatch.setattr(application_master, "history_of", lambda *_: history)
    monkeypatch.setattr(
        application_master, "first_model", lambda *_, **__: SimpleNamespace(config=config)
    )
    refused = ConfigError("task.inputs", "k.in", "it was recreated", "reset the state")
    monkeypatch.setattr(application_master, "accept_inputs", _raises(refused))
    container: Any = SimpleNamespace(
        submission=SimpleNamespace(submitted=None), rank=SimpleNamespace(submission=1)
    )
    stream: Any = InMemoryCoordinatorStream()
    models: Any = None
    with pytest.raises(ConfigError, match="it was recreated"):
        application_master.begin(container, stream, models, is_submission=True)
    assert done == ["closed"]


def test_what_a_program_makes_is_its_users_alone(tmp_path: Path) -> None:
    """Files of attempt, driver and keeper, and their sockets, whatever the supervisor's mask."""
    before = os.umask(0)
    try:
        process = Process(("/bin/sh", "-c", f"cd {tmp_path}; mkdir folder; touch folder/file"))
        process.popen.wait()
        process.close()
    finally:
        os.umask(before)
    paths = [tmp_path / name for name in ("folder", "folder/file")]
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o700, 0o600]
