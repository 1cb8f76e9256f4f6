"""FunctionTask: a StreamTask made from functions, which may take key and value of a record.

Such a task needs no message for each record, and what its functions use is bound to it for a batch
of records: that pays for the calls between the container and the functions.
"""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager

from homeport.container.api import IncomingMessage, StreamTask, TaskContext

PairFunction = Callable[[object, object], object]
"""Takes key and value of one record, as the serdes of its stream give them."""


class FunctionTask(StreamTask):
    """Calls functions in the place of ``process``; see ``homeport.job``."""

    @abstractmethod
    def calling(self) -> AbstractContextManager[object]:
        """Bind what the functions use to this task, in this thread, until the block ends."""

    @abstractmethod
    def of_pairs(self, system: str, stream: str) -> PairFunction | None:
        """Return the stream's function if it takes key and value alone; None: it does not."""

    @abstractmethod
    def called(self, message: IncomingMessage, context: TaskContext) -> object:
        """Call the function for ``message``, within ``calling``."""
