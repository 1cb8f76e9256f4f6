"""How a stream is read, by its keys."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.input_section import (
    InputPolicy,
    LostInput,
    OffsetDefault,
    batch_max_bytes,
    time_ms,
)
from homeport.config.settings.memory_rule import divide

MIB = 1024 * 1024


def _policy(**keys: str) -> InputPolicy:
    given = {key.replace("_", "."): value for key, value in keys.items()}
    return InputPolicy.of(Config({f"systems.k.{key}": v for key, v in given.items()}), "k", "a.b")


def test_without_keys_reading_is_samzas() -> None:
    """Upcoming, all streams alike; and no record is lost unseen."""
    assert _policy() == InputPolicy(OffsetDefault.UPCOMING, LostInput.FAIL)


def test_the_streams_key_wins_over_the_systems() -> None:
    """Also where the topic's name has dots."""
    system = {"samza_offset_default": "oldest", "input_lost": "latest"}
    assert _policy(**system) == InputPolicy(OffsetDefault.OLDEST, LostInput.LATEST)
    stream = {
        "streams_a_b_samza_offset_default": "upcoming",
        "streams_a_b_input_lost": "earliest",
        "streams_a_b_samza_reset_offset": "true",
        "streams_a_b_samza_bootstrap": "true",
        "streams_a_b_samza_priority": "7",
        "streams_a_b_start_time": "5",
    }
    assert _policy(**system, **stream) == InputPolicy(
        OffsetDefault.UPCOMING, LostInput.EARLIEST, 5, is_reset=True, is_bootstrap=True, priority=7
    )


def test_minus_one_is_no_priority() -> None:
    """Samza: unset is -1, which is 0."""
    assert _policy(streams_a_b_samza_priority="-1").priority == 0


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("start_time", "yesterday", "it must be milliseconds since the epoch, or ISO 8601"),
        ("samza_reset_offset", "maybe", "true or false"),
        ("samza_bootstrap", "maybe", "true or false"),
        ("samza_priority", "-2", "-1"),
        ("input_lost", "skip", "it must be fail or earliest or latest"),
    ],
)
def test_a_wrong_value_is_one_line(key: str, value: str, rule: str) -> None:
    """Key, value, rule."""
    with pytest.raises(ConfigError, match=rule) as caught:
        _policy(**{f"streams_a_b_{key}": value})
    assert str(caught.value).startswith(f"systems.k.streams.a.b.{key.replace('_', '.')} = ")


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("0", 0),
        ("1372939200000", 1_372_939_200_000),
        ("2013-07-04T12:00:00+00:00", 1_372_939_200_000),
        ("2013-07-04T12:00:00Z", 1_372_939_200_000),
        ("2013-07-04T12:00:00", None),
        ("1969-12-31T23:59:59+00:00", None),
        ("9" * 30, None),
        ("253402300800000", None),
        ("", None),
    ],
)
def test_a_time_is_a_number_or_has_its_zone(text: str, at_ms: int | None) -> None:
    """From 1970 to the year 9999."""
    assert time_ms(text) == at_ms


@pytest.mark.parametrize(
    ("container_mb", "has_pipeline", "expected"),
    [(1024, True, 16 * MIB), (1024, False, 54 * MIB), (4096, True, 64 * MIB)],
)
def test_a_batch_is_a_share_of_the_memory(
    container_mb: int, expected: int, *, has_pipeline: bool
) -> None:
    """A sixteenth of Python's, within bounds; the key says another size."""
    memory = divide(container_mb, has_pipeline=has_pipeline)
    assert batch_max_bytes(Config({}), memory) == expected
    assert batch_max_bytes(Config({"task.batch.max.bytes": "5"}), memory) == 5
