"""The lease of a session: by which answers it is renewed, and from when it is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.protocol.states import KazooState, KeeperState

from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.standalone.protocol import Event, SessionBegun
from homeport.job_coordinator.zookeeper import client as client_module
from homeport.job_coordinator.zookeeper import session as session_module
from homeport.job_coordinator.zookeeper.session import Connection, Session

SESSION_MS = 30_000
PART_MS = 3_000
SETTINGS = StandaloneConfig("a:1", "/homeport", SESSION_MS, 1000, 1000, 0, 8080)


@dataclass
class Scene:
    """A session whose client and clock are the test's.

    ``answers``: what comes with each answer of ZooKeeper's; after the last one the session ends.
    """

    now_ms: int = 1_000_000
    answers: list[Callable[[], None]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def begin(self) -> Session:
        """Connected, with a session that ZooKeeper's leader has heard of now."""
        made = Session(SETTINGS, {}, self._put, self.lines.append)
        client: Any = SimpleNamespace(
            sync_async=self._asks, client_state=KeeperState.CONNECTED, client_id=None
        )
        connection: Any = made.client._connection
        connection._connect()
        made.client = client
        made._on_state(KazooState.CONNECTED)
        self.session = made
        return made

    def _put(self, _connection: Connection, event: Event) -> None:
        self.events.append(event)

    def _asks(self, path: str) -> Any:  # noqa: ANN401 - kazoo has no types
        self.asked.append(path)
        return SimpleNamespace(get=self._answered)

    def _answered(self) -> None:
        self.answers.pop(0)()
        if not self.answers:
            self.session._stopped.set()

    def passes(self, ms: int) -> Callable[[], None]:
        """An answer that takes so long."""

        def answer() -> None:
            self.now_ms += ms

        return answer


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Its clock is everybody's, and no wait takes time."""
    made = Scene()
    for module in (session_module, client_module):
        monkeypatch.setattr(module, "boot_ms", lambda: made.now_ms)
    times = (SESSION_MS * 2 // 3, 1000)
    monkeypatch.setattr("kazoo.protocol.connection.ConnectionHandler._connect", lambda *_: times)
    return made


def deadline_of(session: Session) -> int:
    """Return the deadline of its lease."""
    return session.connection.lease.deadline_ms


def test_a_lease_is_counted_from_the_sending_of_the_question_before(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Safety C1: the leader may have heard of the session then, and not since.

    An answer that is late makes no lease longer; the first question before is the connection's.
    """
    session, begun_ms = scene.begin(), scene.now_ms
    found: list[int] = []

    def wait(_s: float) -> None:
        found.append(deadline_of(session))

    monkeypatch.setattr(session._stopped, "wait", wait)
    scene.now_ms += 10
    scene.answers += [scene.passes(700), scene.passes(900), scene.passes(0)]
    session._probe()
    lasts_ms = SESSION_MS - PART_MS
    sent = [begun_ms, begun_ms + 10, begun_ms + 710]
    assert found == [at + lasts_ms for at in sent]
    assert scene.asked == ["/"] * 3
    assert scene.events == [SessionBegun()]


def test_an_answer_to_an_older_connection_renews_nothing(scene: Scene) -> None:
    """It proves nothing of the session that stands now, or does not."""
    session = scene.begin()
    scene.now_ms += PART_MS
    scene.answers += [scene.passes(0)]
    session._probe()
    before = deadline_of(session)

    def breaks() -> None:
        session._on_state(KazooState.SUSPENDED)
        session._on_state(KazooState.CONNECTED)

    session._stopped.clear()
    scene.answers += [breaks]
    session._probe()
    assert deadline_of(session) == before
    session._stopped.clear()
    scene.answers += [scene.passes(0), scene.passes(0)]
    session._probe()
    assert deadline_of(session) > before


def test_a_new_session_has_a_lease_of_its_own(scene: Scene) -> None:
    """The lease of the session before is not renewed any more."""
    session = scene.begin()
    scene.answers += [scene.passes(0)]
    session._probe()
    old = session.connection.lease
    before = old.deadline_ms
    session._on_state(KazooState.LOST)
    session._on_state(KazooState.CONNECTED)
    scene.now_ms += PART_MS
    session._stopped.clear()
    scene.answers += [scene.passes(0)]
    session._probe()
    assert old.deadline_ms == before
    assert scene.events.count(SessionBegun()) == 2
