"""Typed view of how a job reads one of its input streams, and how much of them at once."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.memory_rule import MemoryShares
from homeport.config.system_stream import SystemStream

AS_INPUTS = "inputs"
"""Value of ``task.repartition.<name>``: as many partitions as the inputs have."""
_REPARTITION = "__homeport_repartition"
LATEST_MS = 253_402_300_799_999
"""The end of the year 9999, in ms since 1970."""
TIME_RULE = (
    "it must be milliseconds since the epoch, or ISO 8601 with a time zone, from 1970 to the year "
    "9999"
)
TIME_REMEDY = "such as 1372939200000 or 2013-07-04T12:00:00+00:00"
_MIB = 1024 * 1024
_BATCH_PART = 16
_SMALLEST_BATCH = 16 * _MIB
_LARGEST_BATCH = 64 * _MIB


class OffsetDefault(StrEnum):
    """Where a task begins in a partition that it has no checkpoint of."""

    UPCOMING = "upcoming"
    OLDEST = "oldest"


class LostInput(StrEnum):
    """What a task does where records were deleted before it has read them."""

    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class InputPolicy:
    """How one stream is read.

    ``start_ms``: time at which a task without a checkpoint begins, in ms since 1970; None:
    ``default`` says where. ``is_reset``: whether each start ignores the checkpoint.
    ``is_bootstrap``: whether the stream is read to its end before others. ``priority``: higher goes
    first.
    """

    default: OffsetDefault
    lost: LostInput
    start_ms: int | None = None
    is_reset: bool = False
    is_bootstrap: bool = False
    priority: int = 0

    @staticmethod
    def of_repartition(config: Config, stream: SystemStream) -> InputPolicy:
        """Return how a topic of the job's own is read: from its first record on, without a gap."""
        priority = keys.STREAM_PRIORITY.read(config, stream.system, stream.stream)
        return InputPolicy(OffsetDefault.OLDEST, LostInput.FAIL, priority=max(0, priority))

    @staticmethod
    def of(config: Config, system: str, stream: str) -> InputPolicy:
        """Return the view of ``config``; ConfigError where a value breaks its rule."""
        default = keys.STREAM_OFFSET_DEFAULT.read(config, system, stream)
        lost = keys.STREAM_LOST_INPUT.read(config, system, stream)
        return InputPolicy(
            OffsetDefault(default or keys.SYSTEM_OFFSET_DEFAULT.read(config, system) or "upcoming"),
            LostInput(lost or keys.SYSTEM_LOST_INPUT.read(config, system) or "fail"),
            _start_ms(config, system, stream),
            keys.STREAM_RESET_OFFSET.read(config, system, stream),
            keys.STREAM_BOOTSTRAP.read(config, system, stream),
            max(0, keys.STREAM_PRIORITY.read(config, system, stream)),
        )


@dataclass(frozen=True, slots=True)
class Repartition:
    """One topic that the job's tasks write and read; no other program does.

    ``partitions``: None: as many as the job's inputs have. ``replication``: None: no key sets it.
    """

    name: str
    stream: SystemStream
    partitions: int | None = None
    replication: int | None = None

    @property
    def key(self) -> str:
        """Return the configuration key that declares it."""
        return keys.TASK_REPARTITION.named(self.name)


def repartition_topic(job_name: str, job_id: str, name: str) -> str:
    """Return the topic of ``task.repartition.<name>``.

    Two jobs share it only where they share a coordinator stream, which refuses the second one. No
    rewriter takes it for an input, as of all names that begin with two underscores.
    """
    parts = (part.replace("_", "-") for part in (job_name, job_id))
    return "_".join((_REPARTITION, *parts, name))


def repartition_name(topic: str) -> str | None:
    """Return the name of the repartition with that topic; None: no job's repartition has it."""
    rest = topic.removeprefix(f"{_REPARTITION}_").split("_", 2)
    return rest[2] if topic.startswith(f"{_REPARTITION}_") and len(rest) > 2 else None  # noqa: PLR2004 - the third


def _start_ms(config: Config, system: str, stream: str) -> int | None:
    text = keys.STREAM_START_TIME.read(config, system, stream)
    if text is None:
        return None
    at_ms = time_ms(text)
    if at_ms is None:
        name = keys.STREAM_START_TIME.named(system, stream)
        raise ConfigError(name, text, TIME_RULE, TIME_REMEDY)
    return at_ms


def time_ms(text: str) -> int | None:
    """Return the time that ``text`` names, in ms since 1970; None: none up to the year 9999."""
    if text.isascii() and text.isdigit() and len(text) <= len(str(LATEST_MS)):
        at_ms = int(text)
    else:
        try:
            at = dt.datetime.fromisoformat(text)
        except ValueError:
            return None
        if at.tzinfo is None:
            return None
        at_ms = int(at.timestamp() * 1000)
    return at_ms if 0 <= at_ms <= LATEST_MS else None


def batch_max_bytes(config: Config, memory: MemoryShares) -> int:
    """Return the size from which a micro-batch takes no more records, in bytes.

    Beside the batch the consumer's buffer, what was fetched beyond the batch, and the Arrow table
    may each be as large.
    """
    given = keys.TASK_BATCH_MAX_BYTES.find(config)
    if given is not None:
        return given
    share = memory.python_mb * _MIB // _BATCH_PART
    return min(max(share, _SMALLEST_BATCH), _LARGEST_BATCH)
