"""Orders to Spark's JVM and their answers."""

from __future__ import annotations

import select
import socket
import struct
import threading

import pytest

from homeport.container.spark.plan_once import PlanOnce

LIMIT_S = 30.0
_STEP_S = 0.01


class _Comers:
    """A lock that counts the threads that come for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_each_order_has_its_own_answer_whichever_thread_gives_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The JVM works on the first until the second thread has come, with its order or without."""
    own, jvm = socket.socketpair()
    comers, got = _Comers(), dict[int, int]()
    monkeypatch.setattr(PlanOnce, "_one_answer", comers)
    plan = PlanOnce.__new__(PlanOnce)
    plan._socket, plan._answers = own, own.makefile("rb")

    def run(number: int) -> None:
        (answer,) = plan._answer([struct.pack(">iq", 2, number)])
        got[number] = struct.unpack(">q", answer.to_pybytes())[0]

    def order() -> int:
        return int(struct.unpack(">iq", orders.read(12))[1])

    def answer(number: int) -> None:
        jvm.sendall(struct.pack(">iiq", 1, 8, number))

    with own, jvm, jvm.makefile("rb", buffering=0) as orders:
        threads = [threading.Thread(target=run, args=[n], daemon=True) for n in (1, 2)]
        threads[0].start()
        assert order() == 1
        threads[1].start()
        is_here: list[socket.socket] = []
        while comers.count < 2 and not is_here:
            is_here = select.select([jvm], [], [], _STEP_S)[0]
        if is_here:
            answer(order())
        answer(1)
        if not is_here:
            answer(order())
        for thread in threads:
            thread.join(LIMIT_S)
    assert got == {1: 1, 2: 2}
