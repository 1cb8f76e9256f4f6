"""Checks that a job's state, input positions and code fit what it runs with next."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.appmaster.upgrade.messages import in_brief
from homeport.cli.yarn import one_time_configuration, preflight, state_reset
from homeport.cli.yarn.job import Job
from homeport.cli.yarn.waiting import say
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.operators_file import with_own_places
from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_facts import StateFactManager, StoreForms
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.upgrade import UpgradeState

OTHER_PACKAGE = "--other-package"


def check_state(job: Job, *, reset_state: bool) -> Mapping[str, StoreForms]:
    """Require that the job's state, if any, fits its configuration, or may be thrown away.

    Returns:
        {changelog: how what it holds is read}, of the state that stays.

    Raises:
        ConfigError: it does not; nothing has been written.
    """
    before, forms = Config(), dict[str, StoreForms]()
    if job.has_stream():
        with job.stream() as store:
            before = with_own_places(ConfigManager(store).read(), job.config)
            if not reset_state:
                forms = StateFactManager(store).forms()
                one_time_configuration.require_unchanged(store, job.config)
                preflight.check_changelogs(job.config, store, say)
                preflight.check_checkpoints(job.config, store)
                preflight.check_inputs(job.config, store, say)
    elif not reset_state:
        preflight.check_changelogs(job.config, InMemoryCoordinatorStream(), say)
    if reset_state:
        topics = state_reset.state_topics(before, job.config)
        state_reset.check_topics(topics, job.config, before)
    return forms


def check_package(job: Job, package: str, *, is_other_meant: bool) -> None:
    """Require that the job gets the code of its last upgrade, or that other code is meant.

    ``package``: the sha256 of the package to submit.

    Raises:
        ConfigError: it would get other code in silence; nothing has been written.
    """
    if not job.has_stream():
        return
    with job.stream() as store:
        state = UpgradeManager(store).last_state()
    rule = None if state is None else other_package(state, package)
    if rule is None:
        return
    if not is_other_meant:
        key = keys.YARN_PACKAGE_PATH
        remedy = f"let it name the code of the upgrade; {OTHER_PACKAGE} if other code is meant"
        raise ConfigError(key.name, key.read(job.config), rule, remedy)
    say(f"note: {rule}")


def other_package(state: UpgradeState, package: str) -> str | None:
    """Return why ``package`` is not what the job ran last; None: it is, or may be.

    Any package may replace one that no upgrade has brought.
    """
    is_over = state.phase.is_final
    ran = (state.left,) if is_over else (state.package, state.previous)
    if package in ran or None in ran:
        return None
    names = " and ".join(in_brief(name) for name in ran)
    how = "has left the job with" if is_over else f"({state.phase.value}) was under way between"
    return (
        f"it is package {in_brief(package)}, and the last upgrade, in {state.application}, {how} "
        f"{names}"
    )
