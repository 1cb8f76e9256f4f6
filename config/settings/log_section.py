"""Typed view of the keys of logs, and the variables by which processes start with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import values_of

FORMAT_VARIABLE, LEVEL_VARIABLE = "HOMEPORT_LOG_FORMAT", "HOMEPORT_LOG_LEVEL"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """How the processes of a job log. ``format``: ``text`` or ``json``; ``level``: a name."""

    format: Annotated[str, keys.JOB_LOG_FORMAT]
    level: Annotated[str, keys.JOB_LOG_LEVEL]

    @staticmethod
    def of(config: Config) -> LogConfig:
        """Return the view of ``config``."""
        return LogConfig(**values_of(LogConfig, config))

    def variables(self) -> Mapping[str, str]:
        """Return the environment of a process, which logs before it has a configuration."""
        return {FORMAT_VARIABLE: self.format, LEVEL_VARIABLE: self.level}
