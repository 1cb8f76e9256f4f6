"""Every key that is a number has a range; whatever is written there, nothing but that is read."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_jobs import KEYS, store_keys

from homeport.config.config import LONG_MAX, Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import BoolKey, IntKey, Key, ListKey, TextKey
from homeport.config.errors import ConfigError
from homeport.config.number_text import decimal_of, float_of, whole_of
from homeport.config.settings.records_section import RecordsConfig
from homeport.config.settings.rocksdb_section import RocksDbConfig
from homeport.config.settings.sections import ClusterManagerConfig
from homeport.config.settings.validation import validate

NUMBERS = tuple(key for key in keys.ALL if isinstance(key, IntKey))
HUGE = ("1" + "0" * 400, "1" + "0" * 5_000, "-" + "9" * 5_000, "1e400", "nan", "inf", "true", "1.0")
TEXTS = st.one_of(
    st.integers().map(str),
    st.integers(0, 6_000).map(lambda digits: "9" * digits),
    st.floats().map(str),
    st.booleans().map(str),
    st.sampled_from(["٣", "²", "1_000", "+5", " 7 ", "0x10", "\ud800", "\x00", *HUGE]),
    st.text(),
)
BY_WHAT_KEEPS_A_JOB_OPERABLE = {
    keys.JOB_COORDINATOR_CATCH_UP_INTERVAL_MS: 60_000,
    keys.CONTAINER_CHECK_IN_INTERVAL_MS: 60_000,
    keys.CONTAINER_LEASE_MS: 600_000,
    keys.JOB_COORDINATOR_ISOLATION_MAX_MS: 3_600_000,
    keys.CONTAINER_CHECK_IN_TIMEOUT_MS: 3_600_000,
    keys.TASK_SHUTDOWN_MS: 3_600_000,
    keys.CONTAINER_REQUEST_TIMEOUT_MS: 86_400_000,
    keys.CONTAINER_LAST_RETRY_DELAY_MS: 86_400_000,
    keys.COMMAND_TIMEOUT_MS: 86_400_000,
}


def _name(key: Key) -> str:
    return key.named(*("x" for _ in range(key.name.count("<"))))


def test_every_number_has_a_range_that_java_has_too() -> None:
    """The default is within it, and the reference table shows it."""
    for key in NUMBERS:
        assert key.minimum <= key.maximum <= LONG_MAX
        assert key.kind == f"whole number from {key.minimum} to {key.maximum}"
        assert key.default is None or key.minimum <= key.default <= key.maximum


@pytest.mark.parametrize("key", BY_WHAT_KEEPS_A_JOB_OPERABLE, ids=lambda key: key.name)
def test_the_waiting_times_of_the_driver_are_bounded(key: IntKey) -> None:
    """The largest value is taken; one more is refused, with the remedy."""
    most = BY_WHAT_KEEPS_A_JOB_OPERABLE[key]
    assert key.read(Config({key.name: str(most)})) == most
    line = f"{key.name} = '{most + 1}': it must be at most {most}; write {most} or less"
    with pytest.raises(ConfigError) as refused:
        key.check(Config({key.name: str(most + 1)}), key.name)
    assert str(refused.value) == line


@pytest.mark.parametrize("text", HUGE, ids=lambda text: text[:12])
def test_a_number_outside_its_range_is_refused_in_a_short_line(text: str) -> None:
    """Key, value, rule, remedy; of a long value its beginning."""
    for key in NUMBERS:
        name = _name(key)
        with pytest.raises(ConfigError) as refused:
            key.check(Config({name: text}), name)
        line = str(refused.value)
        assert line.startswith(f"{name} = '{text[:50]}")
        assert len(line) < 600
        assert "\n" not in line


def _fault(call: Callable[[], object]) -> str:
    """The error for the user; empty where nothing is wrong."""
    try:
        call()
    except ConfigError as error:
        return str(error)
    return ""


def _read(key: Key, config: Config) -> object:
    parts = ("x",) * key.name.count("<")
    match key:
        case IntKey():
            found = key.find(config, *parts)
            assert found is None or key.minimum <= found <= key.maximum
            return found
        case TextKey() | BoolKey() | ListKey():
            return key.read(config, *parts)
    raise AssertionError(key)


@pytest.mark.search
@given(TEXTS)
def test_any_text_is_a_value_of_the_range_or_a_configuration_error(text: str) -> None:
    """Checked, read and put into its plain form: no other exception."""
    for key in keys.ALL:
        name = _name(key)
        config = Config({name: text})
        assert len(_fault(partial(key.check, config, name))) < 2_000
        _fault(partial(_read, key, config))
        key.plain(text)


GOOD = Config(
    {
        **KEYS,
        "job.host-affinity.enabled": "true",
        **store_keys("x", "string", msg_serde="json", changelog="kafka.x"),
    }
)
OTHERS = (
    "systems.kafka.producer.buffer.memory",
    "systems.kafka.producer.max.request.size",
    "systems.kafka.producer.transaction.timeout.ms",
    "task.spark.conf.spark.driver.cores",
    "my.own.key",
)


@pytest.mark.search
@given(TEXTS)
@example("0\n0")
def test_a_configuration_is_valid_or_has_one_fault(text: str) -> None:
    """Whatever one key says: what validation accepts, all sections can be made of."""
    for name in (*map(_name, keys.ALL), *OTHERS):
        config = GOOD.merged({name: text})
        fault = _fault(partial(validate, config))
        assert "\n" not in fault
        if not fault:
            ClusterManagerConfig.of(config)
            RocksDbConfig.of(config, "x")
            RecordsConfig.of(config)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("message.max.bytes", 1_000, 1_000_000_000),
        ("max.request.size", 1_000, 1_000_000_000),
        ("transaction.timeout.ms", 1_000, 2**31 - 1),
    ],
)
def test_producer_keys_that_homeport_reads_have_librdkafkas_range(
    name: str, least: int, most: int
) -> None:
    """A submission is refused, where a container's producer would have been."""
    key = f"systems.kafka.producer.{name}"
    for text in (str(least), str(most)):
        validate(GOOD.merged({key: text}))
    for text in ("lots", str(least - 1), str(most + 1), *HUGE):
        with pytest.raises(ConfigError, match=rf"^{key} = "):
            validate(GOOD.merged({key: text}))


OF_PYTHON_ALONE = ["1_0", "+1", " 1", "1 ", "\uff11", "\u0661", "", "-", "0x1", "nan", "inf", "1\n"]


@pytest.mark.parametrize("text", OF_PYTHON_ALONE)
@pytest.mark.parametrize("read", [whole_of, decimal_of, float_of])
def test_what_python_alone_takes_is_no_number(read: Callable[[str], object], text: str) -> None:
    """Samza, Kafka and librdkafka refuse most of it, and read none of it otherwise."""
    with pytest.raises(ValueError, match="is no"):
        read(text)


def test_numbers_are_read_as_they_stand() -> None:
    """A decimal with each of its digits."""
    assert (whole_of("-007"), whole_of("9" * 30)) == (-7, int("9" * 30))
    assert decimal_of("-1.50") == Decimal("-1.50")
    assert [str(decimal_of(t)) for t in (".5", "5.", "15e-1", "1E+2")] == [
        "0.5",
        "5",
        "1.5",
        "1E+2",
    ]
    assert float_of("-1.5e3") == -1500.0
    with pytest.raises(ValueError, match="is beyond a double"):
        float_of("1e400")
    for text in ("1" * 5000, "1.5"):
        with pytest.raises(ValueError, match="is no whole number"):
            whole_of(text)


@pytest.mark.parametrize("text", ["1_0", "+10", "\uff11\uff10"])
def test_a_key_takes_no_other_number(text: str) -> None:
    """Blanks around a value are none of it."""
    key = keys.TASK_COMMIT_MS
    with pytest.raises(ConfigError, match="it must be a whole number"):
        key.read(Config({key.name: text}))
    assert key.read(Config({key.name: " 1000 "})) == 1000
    assert key.plain(text) == text
    assert key.plain(" 0010 ") == "10"
