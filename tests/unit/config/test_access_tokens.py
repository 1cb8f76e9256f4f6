"""Named digests of operators' tokens in the configuration."""

from __future__ import annotations

import hashlib

import pytest

from homeport.config.access_tokens import MOST, NamedToken, digest_of, named_tokens
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError

ADA = digest_of(b"a")
NEW = digest_of(b"b")
KEY = keys.JOB_COORDINATOR_OPERATE_TOKENS


def test_a_digest_is_the_sha_256_of_the_token() -> None:
    """As ``sha256sum`` says it."""
    assert digest_of(b"a") == hashlib.sha256(b"a").hexdigest()


def test_two_tokens_of_a_name_are_valid_at_once() -> None:
    """The older one first; other names beside them."""
    items = (f"ada:{ADA}", f"bob.ops:{ADA}", f"ada:{NEW}")
    assert named_tokens("k", items) == (
        NamedToken("ada", ADA),
        NamedToken("bob.ops", ADA),
        NamedToken("ada", NEW),
    )
    assert tuple(map(str, named_tokens("k", items))) == items


@pytest.mark.parametrize(
    "item",
    [
        *("ada", f"ada:{ADA[:-1]}", f"ada:{ADA.upper()}", f":{ADA}", f"a b:{ADA}", f"job:{ADA}"),
        *(f"{'x' * 41}:{ADA}", f"ada:{ADA}:", f"-ada:{ADA}", f"ada:{ADA}\n"),
    ],
)
def test_what_is_no_named_digest_is_refused(item: str) -> None:
    """In one line, which names the key and the remedy."""
    with pytest.raises(ConfigError, match=r"k.*NAME:DIGEST.*homeport token new"):
        named_tokens("k", [item])


def test_a_third_token_of_a_name_is_refused() -> None:
    """Before it is in force; the remedy revokes the old one."""
    items = [f"ada:{digest_of(bytes([n]))}" for n in range(3)]
    with pytest.raises(ConfigError, match=r"3 tokens have this name.*token revoke ada --old"):
        named_tokens("k", items)


def test_there_is_a_most() -> None:
    """One more is refused."""
    items = [f"n{number}:{ADA}" for number in range(MOST + 1)]
    assert len(named_tokens("k", items[1:])) == MOST
    with pytest.raises(ConfigError, match=f"at most {MOST}"):
        named_tokens("k", items)


def test_the_keys_are_checked_and_read() -> None:
    """By their type; the running job takes a change."""
    config = Config({KEY.name: f"ada:{ADA}, bob:{NEW}"})
    KEY.check(config, KEY.name)
    assert [token.name for token in KEY.tokens(config)] == ["ada", "bob"]
    assert KEY.tokens(Config({})) == ()
    assert "NAME:DIGEST" in KEY.kind
    with pytest.raises(ConfigError) as refused:
        KEY.check(Config({KEY.name: "in-clear-by-mistake"}), KEY.name)
    assert "in-clear-by-mistake" not in str(refused.value)
