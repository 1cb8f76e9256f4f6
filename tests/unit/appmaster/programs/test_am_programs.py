"""What the AM's programs leave behind: exit codes, files that they close, files of their own."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.attempt.supervision import EXIT_UNFIT_HOST
from homeport.appmaster.programs import application_master, lease_keeper
from homeport.appmaster.programs.am_container import AmContainer
from homeport.appmaster.programs.supervisor import Process
from homeport.appmaster.yarn.node_names import NodeNames
from homeport.config.config import Config
from homeport.config.errors import CannotListenError, ConfigError, UnavailableError
from homeport.job_coordinator.metadata.recorded_model import ModelRecords
from homeport.job_coordinator.model.ids import Host


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
    known: Any = None
    with pytest.raises(ConfigError, match="it was recreated"):
        application_master.begin(
            *(container, stream, models, known, ModelRecords(stream)), is_submission=True
        )
    assert done == ["closed"]


class _Yarn:
    """The hosts that YARN reports, and how often it had to; None: it does not answer."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.answers = 0

    def hosts(self) -> list[Any]:
        self.answers += 1
        if not self.names:
            raise UnavailableError("no answer")
        return [SimpleNamespace(host=Host(name)) for name in self.names]


@pytest.mark.parametrize(
    ("recorded", "home"),
    [
        ("nm1", "nm1.example.com"),
        ("NM1.example.com", "nm1.example.com"),
        ("nm2.example.com", "nm2"),
        ("nm", "nm"),  # of two
        ("nm1.example.org", "nm1.example.org"),
        ("127.0.0.9", "nm2"),
        ("127.0.0.8", "127.0.0.8"),
    ],
)
def test_a_home_is_known_by_its_short_and_its_full_name(recorded: str, home: str) -> None:
    """Samza's containers write the name that the machine has for itself, perhaps not YARN's."""
    names = NodeNames({"nm2": "127.0.0.9", "other": "127.0.0.7"})
    container: Any = SimpleNamespace(names=names)
    container.host_named = partial(AmContainer.host_named, container)
    yarn: Any = _Yarn("nm1.example.com", "nm2", "nm.a", "nm.b")
    named = application_master.host_names(container, yarn)
    assert yarn.answers == 0
    assert named(Host(recorded)) == named(Host(recorded)) == home
    assert yarn.answers == 1


def test_a_home_keeps_its_name_where_yarn_does_not_answer() -> None:
    """It is not asked again: each home would wait for it."""
    container: Any = SimpleNamespace(names=NodeNames({}))
    container.host_named = partial(AmContainer.host_named, container)
    yarn: Any = _Yarn()
    named = application_master.host_names(container, yarn)
    assert (named(Host("nm1")), named(Host("nm2")), yarn.answers) == ("nm1", "nm2", 1)


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
