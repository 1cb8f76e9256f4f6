"""StoreFlushes: flushes the stores of a container beside its work, some at a time.

Where a store stands is noted in the thread that writes to it, and before its flush (safety S1). The
flush itself mostly waits for the disk, in another thread. Many stores are flushed in parts, with
rests in between: a round may take longer than ``task.commit.ms``, and nothing waits for it.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain, islice

from homeport.container.host.executors import Executor, SameThread
from homeport.container.progress.pace import Pace
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.task_store import Reached, StoreFlush, passed

_AT_ONCE, _PARTS = 32, 32
"""The stores of a part, and the parts of a round; of very many stores a part has more."""
_SHARE, _REST_S = 1 / 10, 1.0
"""The share of time for the flushes of many stores, and the longest rest between two parts."""
_LOOK_S = 0.2


class StoreFlushes:
    """Owned by the thread that writes to the stores; ``beside`` makes the flushes.

    In ``SameThread`` all that is due is flushed at once.
    """

    def __init__(
        self,
        storage: ContainerStorage,
        beside: Executor,
        clock: Callable[[], float],
        reached: Reached = passed,
        begins: Reached = passed,
    ) -> None:
        self._storage = storage
        self._beside = beside
        self._clock = clock
        self._steps = reached, begins
        self._pace = Pace(1 if isinstance(beside, SameThread) else _SHARE)
        self._round: Iterator[StoreFlush] = iter(())
        self.is_in_round = False
        self._at_once = _AT_ONCE
        self._is_to_rest = False
        self._call: Future[float] | None = None
        self._began_s = 0.0
        self._moved = 0
        self._is_ended = False

    def begin(self) -> None:
        """Begin a round over all stores; one that is under way gives way to it."""
        self._round, self.is_in_round = self._storage.due_flushes(), True
        self._at_once = max(_AT_ONCE, len(self._storage.logged) // _PARTS)
        self._is_to_rest = False
        self._moved += self._storage.flush_adjuncts(*self._steps)

    def step(self) -> int:
        """Go on with what is due; return how many stores had moved, once all of it is done.

        Stores with first changes come first, also where no round has begun.

        Raises:
            StoreError: a store has failed.
        """
        while self._is_done() and not self._rests():
            flushes = self._next()
            if not flushes:
                self.is_in_round, moved, self._moved = False, self._moved, 0
                return moved
            self._began_s, self._is_to_rest = self._clock(), True
            self._call = self._beside.submit(partial(self._flush, flushes))
            self._moved += sum(flush.has_moved for flush in flushes)
        return 0

    def end(self) -> None:
        """Begin no further flush, and wait for the one under way, whatever comes of it.

        A store of which it failed counts as not flushed.
        """
        self._is_ended = True
        while self._call is not None and not self._call.done():
            self._beside.wait(self._call, _LOOK_S)
        self._call = None
        self._beside.close()

    def _rests(self) -> bool:
        return self._is_to_rest and self._pace.left_s(self._clock(), most_s=_REST_S) > 0

    def _next(self) -> Sequence[StoreFlush]:
        return list(islice(chain(self._storage.first_flushes(), self._round), self._at_once))

    def _is_done(self) -> bool:
        if self._call is None:
            return True
        if not self._call.done():
            return False
        call, self._call = self._call, None
        self._pace.took(self._began_s, call.result())
        return True

    def _flush(self, flushes: Sequence[StoreFlush]) -> float:
        for flush in flushes:
            if self._is_ended:
                break
            self._storage.require_sound()
            flush.run(*self._steps)
        return self._clock()
