"""The settings of a launcher, from the environment of its YARN container."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from homeport.config.errors import ConfigError
from homeport.config.number_text import whole_of
from homeport.job_coordinator.http.messages import TOKEN_FILE_NAME
from homeport.job_coordinator.model.ids import Host, ResourceId, host_of


@dataclass(frozen=True, slots=True)
class LauncherSettings:
    """The settings of a launcher, from its environment. Units: ms.

    ``hang_ms``: how long a child may be silent. ``lost_ms``: how long the AM may be silent until a
    launcher without a child exits. ``memory_mb``: what YARN grants to all processes here; 0: not
    known. ``clean_after_ms``: as of ``HostCleaning``.
    """

    coordinator_url: str
    token_file: Path
    resource_id: ResourceId
    skein_id: str
    host: Host
    attempt: int
    log_folder: Path
    interval_ms: int
    hang_ms: int
    lost_ms: int
    shutdown_ms: int
    memory_mb: int
    clean_after_ms: int
    history_folder: Path | None
    history_max_mb: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> LauncherSettings:
        """Return this container's settings; ConfigError: a variable is missing or no number."""
        resource_id = _required(environment, "CONTAINER_ID")
        log_folder = environment.get("LOG_DIRS", "").split(",")[0] or "."
        history = environment.get("HOMEPORT_HISTORY_DIR", "")
        state = environment.get("LOGGED_STORE_BASE_DIR")
        state = state or environment.get("HOMEPORT_LOGGED_STORE_BASE_DIR") or "state"
        return cls(
            coordinator_url=_required(environment, "SAMZA_COORDINATOR_URL"),
            token_file=Path(environment.get("HOMEPORT_TOKEN_FILE") or TOKEN_FILE_NAME).absolute(),
            resource_id=ResourceId(resource_id),
            skein_id=environment.get("SKEIN_CONTAINER_ID", ""),
            host=host_of(_required(environment, "NM_HOST")),
            attempt=attempt_of(resource_id),
            log_folder=Path(log_folder).absolute(),
            interval_ms=_number(environment, "HOMEPORT_CHECK_IN_INTERVAL_MS", 500),
            hang_ms=_number(environment, "HOMEPORT_HANG_MS", 60_000),
            lost_ms=_number(environment, "HOMEPORT_LOST_MS", 40_000),
            shutdown_ms=_number(environment, "HOMEPORT_SHUTDOWN_MS", 30_000),
            memory_mb=_number(environment, "HOMEPORT_MEMORY_MB", 0),
            clean_after_ms=_number(environment, "HOMEPORT_CLEAN_AFTER_MS", 0),
            history_folder=Path(state).absolute() / history if history else None,
            history_max_mb=_number(environment, "HOMEPORT_HISTORY_MAX_MB", 256),
        )


def attempt_of(resource_id: str) -> int:
    """Return the YARN attempt in a container id: 2 for ``container_1700000000000_0001_02_000003``.

    ConfigError: it does not have YARN's form.
    """
    try:
        return whole_of(resource_id.split("_")[-2])
    except (IndexError, ValueError):
        rule = "it must be a YARN container id"
        raise ConfigError("CONTAINER_ID", resource_id, rule, "start the launcher by YARN") from None


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise ConfigError(name, None, "the launcher needs it", "start the launcher by the AM")
    return value


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    if not text:
        return default
    try:
        return whole_of(text)
    except ValueError:
        raise ConfigError(
            name, text, "it must be a whole number", f"set a number such as {default}"
        ) from None
