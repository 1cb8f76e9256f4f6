"""A configuration as it is shown to whoever may not see its secrets. PURE."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.config.secret_names import shown_value


def masked(config: Config) -> Config:
    """``config`` with every secret value, an empty one too, replaced by ``MASK``."""
    return Config({key: shown_value(key, value) for key, value in config.items()})
