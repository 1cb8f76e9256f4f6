"""The launcher's words: permits, settings. Its life: ``test_launcher_run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homeport.config.errors import ConfigError, WireError
from homeport.container.child.process import permit_of
from homeport.container.launcher.launcher_settings import LauncherSettings
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


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({}, {"host": "nm1", "attempt": 2, "skein_id": "h-0_1", "log_folder": Path("/logs/a")}),
        ({}, {"token_file": Path.cwd() / "homeport-token"}),
        ({}, {"interval_ms": 500, "lost_ms": 40_000, "shutdown_ms": 30_000}),
        ({}, {"memory_mb": 0, "history_max_mb": 256}),
        ({"HOMEPORT_MEMORY_MB": "2048"}, {"memory_mb": 2048, "clean_after_ms": 0}),
        ({"HOMEPORT_CLEAN_AFTER_MS": "3600000"}, {"clean_after_ms": 3_600_000}),
        ({"HOMEPORT_HISTORY_MAX_MB": "64"}, {"history_max_mb": 64}),
        ({}, {"history_folder": Path("/state/job-1/.history")}),
        ({"HOMEPORT_HISTORY_DIR": "/var/history"}, {"history_folder": Path("/var/history")}),
        ({"HOMEPORT_HISTORY_DIR": ""}, {"history_folder": None}),
    ],
)
def test_the_settings_come_from_yarn_and_the_am(
    given: dict[str, str], settings: dict[str, object]
) -> None:
    """Host in the one spelling, attempt from the container id, first log folder, defaults.

    An AM of an earlier release does not give all; memory is 0 where it is not known.
    """
    found = LauncherSettings.from_environment({**ENVIRONMENT, **given})
    assert {name: getattr(found, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "") for name in ("CONTAINER_ID", "SAMZA_COORDINATOR_URL", "NM_HOST")),
        ("HOMEPORT_SHUTDOWN_MS", "soon"),
        ("CONTAINER_ID", "container"),
    ],
)
def test_a_missing_or_wrong_variable_is_named(name: str, value: str) -> None:
    """The launcher says which variable it lacks, or cannot read."""
    with pytest.raises(ConfigError, match=name):
        LauncherSettings.from_environment({**ENVIRONMENT, name: value})
