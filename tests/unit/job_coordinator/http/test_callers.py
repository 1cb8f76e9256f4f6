"""What a token allows, and which requests a page of another server has made."""

from __future__ import annotations

import pytest

from homeport.config.access_tokens import digest_of
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.http.callers import (
    OperatorTokens,
    Role,
    is_of_another_page,
    is_own,
    names_of,
)

READ, OPERATE = (keys.JOB_COORDINATOR_READ_TOKENS.name, keys.JOB_COORDINATOR_OPERATE_TOKENS.name)


def config_with(key: str, name: str, *tokens: bytes) -> Config:
    """These tokens of one name."""
    return Config({key: ",".join(f"{name}:{digest_of(t)}" for t in tokens)})


def test_operators_tokens_are_those_of_the_configuration_in_force() -> None:
    """Rotated while it runs: the old one, both, the new one; no restart in between."""
    tokens = OperatorTokens()
    for valid in ((b"old",), (b"old", b"new"), (b"new",)):
        tokens.configured(config_with(OPERATE, "ada", *valid))
        for token in (b"old", b"new"):
            expected = ("ada", Role.OPERATE) if token in valid else ("", Role.NONE)
            assert tokens.holder(token) == expected
    tokens.configured(Config({}))
    assert [tokens.holder(t) for t in (b"new", b"")] == [("", Role.NONE)] * 2


def test_the_greater_role_counts() -> None:
    """Where a token has both."""
    both = {**config_with(READ, "eve", b"t", b"u"), **config_with(OPERATE, "ada", b"t")}
    tokens = OperatorTokens()
    tokens.configured(Config(both))
    tokens.configured(Config(both))
    assert tokens.holder(b"t") == ("ada", Role.OPERATE)
    assert tokens.holder(b"u") == ("eve", Role.READ)


def test_a_wrong_configuration_opens_nothing() -> None:
    """Validation refuses it; the server goes on with none of that key."""
    tokens = OperatorTokens()
    config = config_with(READ, "eve", b"u").merged({OPERATE: "damaged"})
    tokens.configured(config)
    assert tokens.holder(b"damaged") == ("", Role.NONE)
    assert tokens.holder(b"u") == ("eve", Role.READ)


@pytest.mark.parametrize(
    ("origin", "site", "host", "is_other"),
    [
        (None, None, "h:1", False),
        (None, None, None, False),
        ("http://h:1", None, "h:1", False),
        ("http://h:1", "same-origin", "h:1", False),
        (None, "none", "h:1", False),
        ("http://evil", None, "h:1", True),
        ("http://h:2", None, "h:1", True),
        ("null", None, "h:1", True),
        ("http://h:1", "cross-site", "h:1", True),
        (None, "same-site", "h:1", True),
        ("http://h:1", None, None, True),
    ],
)
def test_a_browser_says_which_page_asks(
    origin: str | None, site: str | None, host: str | None, *, is_other: bool
) -> None:
    """By ``Origin``, and by ``Sec-Fetch-Site`` where it sends it; tools send neither."""
    assert is_of_another_page(origin, site, host) is is_other


NAMES = names_of(["NM1.example.com.", "alias", "10.0.0.7", "fd00::7"])
FURTHER = names_of(["jobs.example.com"])


OWN = (
    *("127.0.0.1", "127.0.0.1:8080", "192.168.7.9:1", "[::1]", "[::1]:8080", "[fe80::1%25eth0]:80"),
    *("[::ffff:10.0.0.1]", "localhost", "LocalHost.:80", "nm1.example.com:8080"),
    *("NM1.EXAMPLE.COM.", "nm1:80", "alias:", " alias ", "jobs.example.com", "jobs"),
)
FOREIGN = (
    *("", "evil.example", "evil.example:8080", "nm1.evil.example", "nm1.example.com.evil.example"),
    *("127.0.0.1.evil.example", "10", "localhost.evil.example", "localhost@evil.example"),
    *("evil.example/127.0.0.1", "127.0.0.1, evil.example", "[evil.example]", "[::1", "[::1]x"),
    *("::1.evil", "nm1:80:80", "nm1:eighty", "nm1\u212a", "0x7f.1"),
)


@pytest.mark.parametrize(
    ("host", "is_known"), [*((host, True) for host in OWN), *((host, False) for host in FOREIGN)]
)
def test_an_address_or_a_name_of_this_machine_is_its_own(host: str, *, is_known: bool) -> None:
    """With any port, as a tunnel has another one; a long name by its first part too.

    No other name is, also one that begins or ends as an own one does.
    """
    assert is_own(host, NAMES, FURTHER) is is_known


def test_without_a_name_there_are_addresses_alone() -> None:
    """And this machine as it calls itself."""
    assert is_own("localhost")
    assert is_own("1.2.3.4")
    assert not is_own("nm1")
