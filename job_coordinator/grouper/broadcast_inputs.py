"""Which input partitions every task reads: ``task.broadcast.inputs``.

PURE. Forms of one item: ``system.stream#<partition>`` and ``system.stream#[<first>-<last>]``, both
ends included; system and stream are split at the first dot.
"""

from __future__ import annotations

import re

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_ITEM = re.compile(
    r"(?P<system>[^.#]+)\.(?P<stream>[^#]+)"
    r"#(?:(?P<one>\d{1,6})|\[(?P<first>\d{1,6})-(?P<last>\d{1,6})\])",
    re.ASCII,
)


def broadcast_partitions(config: Config) -> frozenset[SystemStreamPartition]:
    """The partitions that ``task.broadcast.inputs`` names.

    Raises:
        ConfigError: an item has neither form, or a range that ends before it begins (Samza warns
        and ignores that one,
            and the task then waits for input that never comes).
    """
    return frozenset(
        ssp
        for item in config.get_list(keys.TASK_BROADCAST_INPUTS.name)
        for ssp in _partitions(item)
    )


def _partitions(item: str) -> list[SystemStreamPartition]:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise _error(item, "it must be system.stream#partition or system.stream#[first-last]")
    first = int(match["one"] or match["first"])
    last = int(match["one"] or match["last"])
    if last < first:
        raise _error(item, "the range must not end before it begins")
    system, stream = match["system"], match["stream"]
    return [SystemStreamPartition(system, stream, number) for number in range(first, last + 1)]


def _error(item: str, rule: str) -> ConfigError:
    remedy = "write it as in kafka.rules#0 or kafka.rules#[0-3]"
    return ConfigError(keys.TASK_BROADCAST_INPUTS.name, item, rule, remedy)
