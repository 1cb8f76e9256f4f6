"""The launcher's words: permits, settings. Its life: ``test_launcher_run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homeport.config.errors import ConfigError, WireError
from homeport.container.child.process import permit_of
from homeport.container.launcher.launcher import LauncherSettings, attempt_of
from homeport.job_coordinator.http.messages import Order, OrderKind
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

ENVIRONMENT = {
    "CONTAINER_ID": "container_e17_1700000000000_0001_02_000003",
    "SAMZA_COORDINATOR_URL": "http://127.0.0.1:1/",
    "NM_HOST": "NM1",
    "LOG_DIRS": "/logs/a,/logs/b",
    "SKEIN_CONTAINER_ID": "h-0_1",
    "LOGGED_STORE_BASE_DIR": "/state",
    "HOMEPORT_HISTORY_DIR": "job-1/.history",
}


def test_a_permit_has_all_that_the_order_had() -> None:
    """Processor, epoch, model version, fences; an order without a processor is refused."""
    processor = ProcessorId("0")
    order = Order(
        OrderKind.RUN, 500, 10_000, Incarnation(processor, 3), 7, (Incarnation(processor, 2),)
    )
    assert json.loads(permit_of(order).to_json()) == {
        "processor_id": "0",
        "epoch": 3,
        "model_version": 7,
        "fence": [{"processor_id": "0", "epoch": 2}],
    }
    with pytest.raises(WireError):
        permit_of(Order(OrderKind.RUN, 500, 10_000))


def test_the_settings_come_from_yarn_and_the_am() -> None:
    """Host in the one spelling, attempt from the container id, first log folder, defaults."""
    settings = LauncherSettings.from_environment(ENVIRONMENT)
    assert (settings.host, settings.attempt, settings.skein_id) == ("nm1", 2, "h-0_1")
    assert settings.log_folder == Path("/logs/a")
    assert settings.history_folder == Path("/state/job-1/.history")
    assert settings.token_file == Path.cwd() / "homeport-token"
    limits = (settings.interval_ms, settings.lost_ms, settings.shutdown_ms)
    assert limits == (500, 40_000, 30_000)


def test_the_granted_memory_is_unknown_unless_the_am_gives_it() -> None:
    """It is 0 then, and no number of MB; else it is the AM's."""
    assert LauncherSettings.from_environment(ENVIRONMENT).memory_mb == 0
    given = {**ENVIRONMENT, "HOMEPORT_MEMORY_MB": "2048"}
    assert LauncherSettings.from_environment(given).memory_mb == 2048


def test_a_configured_history_folder_is_taken_as_it_is() -> None:
    """An absolute folder is not put below the host's state."""
    given = {**ENVIRONMENT, "HOMEPORT_HISTORY_DIR": "/var/history"}
    assert LauncherSettings.from_environment(given).history_folder == Path("/var/history")
    without = {**ENVIRONMENT, "HOMEPORT_HISTORY_DIR": ""}
    assert LauncherSettings.from_environment(without).history_folder is None


def test_the_history_has_the_bound_that_the_am_gives() -> None:
    """An AM of an earlier release gives none: then it has the key's default."""
    assert LauncherSettings.from_environment(ENVIRONMENT).history_max_mb == 256
    given = {**ENVIRONMENT, "HOMEPORT_HISTORY_MAX_MB": "64"}
    assert LauncherSettings.from_environment(given).history_max_mb == 64


@pytest.mark.parametrize("name", ["CONTAINER_ID", "SAMZA_COORDINATOR_URL", "NM_HOST"])
def test_a_missing_variable_is_named(name: str) -> None:
    """The launcher says which variable it lacks."""
    with pytest.raises(ConfigError, match=name):
        LauncherSettings.from_environment({**ENVIRONMENT, name: ""})


def test_a_wrong_number_or_container_id_is_named() -> None:
    """Wrong values are reported with their name."""
    with pytest.raises(ConfigError, match="HOMEPORT_SHUTDOWN_MS"):
        LauncherSettings.from_environment({**ENVIRONMENT, "HOMEPORT_SHUTDOWN_MS": "soon"})
    with pytest.raises(ConfigError, match="CONTAINER_ID"):
        attempt_of("container")
