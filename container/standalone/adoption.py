"""Adoption: a job of ``run-local`` goes on in another folder after its own is lost.

The lost folder had the numbers of incarnations. The coordinator stream has those that have begun:
each reports before it reads its state (safety I3). An incarnation that has not reported yet reads
the stream afterwards, and finds there that another tree goes on (safety A6). An incarnation at work
is fenced and sees that at its next commit. Without input there is none, so that its processor looks
too (``AdoptionWatch``).
"""

import logging
import threading
from collections.abc import Callable
from contextlib import closing

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.standalone_keys import LOCAL
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.settings.sections import JobConfig
from homeport.container.host.stop_flag import OvertakenError
from homeport.container.incarnation.coordinators import require_tree
from homeport.container.standalone.local_tree import LocalTree
from homeport.container.standalone.planner import KeptStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, epoch_floor_message
from homeport.job_coordinator.standalone.plan import Plan

_LOG = logging.getLogger(__name__)

_CHECK_S = 5.0


def adopt(tree: LocalTree, stream: CoordinatorStream, config: Config) -> bool:
    """Let ``tree``, which is this process's, go on behind all that the job's stream has.

    Return whether there was anything: a tree that has the newest version stays as it is.

    ConfigError: the job has not run by run-local. UnavailableError: Kafka does not answer.
    """
    epochs, key = EpochManager(stream), keys.JOB_COORDINATOR_FACTORY
    highest, recorded = epochs.highest(), key.read(ConfigManager(stream).read())
    if highest <= tree.version:
        return False
    if recorded != LOCAL:
        rule = f"the job has last run under {key.name}={recorded or 'YARN'}, not by run-local"
        raise ConfigError("--adopt", JobConfig.of(config).name, rule, "leave the option out")
    stream.write([epoch_floor_message(highest, tree.id)])
    # After the record: an incarnation that has not read it by now has reported before.
    stream.catch_up()
    tree.go_on(Plan(epochs.highest(), (), former=epochs.read_unfenced()))
    return True


class AdoptionWatch:
    """Notices that the job goes on in another folder than that of ``tree``, the own tree's id.

    ``start`` once, ``close`` in any case. ``kept``: the job's stream, which nothing else uses.
    ``overtaken``: called once, with the line for the user.
    """

    def __init__(self, kept: KeptStream, tree: str, overtaken: Callable[[str], object]) -> None:
        self._kept = kept
        self._tree = tree
        self._overtaken = overtaken
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="adoption-watch", daemon=True)

    def start(self) -> None:
        """Look every few seconds from now on."""
        self._thread.start()

    def close(self) -> None:
        """Report nothing any more; a look under way ends by itself."""
        self._closed.set()

    def check(self) -> bool:
        """Return whether the tree is still the job's; True: Kafka does not answer."""
        try:
            require_tree(self._kept.read(), self._tree)
        except OvertakenError as error:
            self._overtaken(str(error))
            return False
        except HomeportError as error:
            _LOG.debug("the coordinator stream could not be looked at: %s", error)
            self._kept.close()
        return True

    def _run(self) -> None:
        with closing(self._kept):
            while not self._closed.wait(_CHECK_S) and self.check():
                pass
