"""A job of ``run-local`` goes on in another folder: the one of its last processor is lost.

The folder had the numbers of incarnations. The coordinator stream has those that have begun: each
reports before it reads its state (safety I3). One that has not reported yet reads the stream
afterwards, and finds there that another tree goes on (safety A6).
"""

from __future__ import annotations

from contextlib import closing

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.standalone_keys import LOCAL
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig
from homeport.container.standalone.kept_stream import KeptStream
from homeport.container.standalone.local_tree import LocalTree
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, epoch_floor_message
from homeport.job_coordinator.standalone.plan import Plan


def adopt(tree: LocalTree, config: Config) -> bool:
    """Let ``tree``, which is this process's, go on behind all that the job's stream knows.

    Return whether there was anything: a tree that has the newest version stays as it is.

    Raises:
        ConfigError: the job has not run by run-local.
        UnavailableError: Kafka does not answer.
    """
    with closing(KeptStream(config)) as kept:
        return go_on_in(tree, kept.read(), config)


def go_on_in(tree: LocalTree, stream: CoordinatorStream, config: Config) -> bool:
    """As ``adopt``; ``stream``: read to its head."""
    epochs, key = EpochManager(stream), keys.JOB_COORDINATOR_FACTORY
    highest, recorded = epochs.highest(), key.read(ConfigManager(stream).read())
    if highest <= tree.version:
        return False
    if recorded != LOCAL:
        raise ConfigError(
            "--adopt",
            JobConfig.of(config).name,
            f"the job has last run under {key.name}={recorded or 'YARN'}, not by run-local",
            "leave the option out",
        )
    stream.write([epoch_floor_message(highest, tree.id)])
    # After the record: an incarnation that has not read it by now has reported before.
    stream.catch_up()
    tree.go_on(Plan(epochs.highest(), (), former=epochs.read_unfenced()), config)
    return True
