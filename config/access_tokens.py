"""Tokens of a job's operators as the configuration has them: a name, and the digest of the token.

PURE. The configuration does not have the token itself: a reader of the coordinator stream cannot
act by HTTP. A token has 256 random bits, so its digest needs no salt.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from homeport.config.errors import ConfigError

OF_ONE_NAME = 2
"""While a token is rotated, the old one and the new one."""
MOST = 50
RESERVED = "job"
"""The name of the token that each submission makes for the job's own programs."""

_ITEM = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,39}):(?P<digest>[0-9a-f]{64})")
_REMEDY = "homeport token new NAME writes one"


@dataclass(frozen=True, slots=True)
class NamedToken:
    """``digest``: SHA-256 of the token, in hexadecimal digits."""

    name: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name}:{self.digest}"


def digest_of(token: bytes) -> str:
    """Return the digest by which a token is compared."""
    return hashlib.sha256(token).hexdigest()


def named_tokens(key: str, items: Iterable[str]) -> tuple[NamedToken, ...]:
    """Return the tokens of a key's value, in the order given: of one name the newest is the last.

    ConfigError: an item is none, or there are more than may be.
    """
    found = []
    for item in items:
        match = _ITEM.fullmatch(item)
        if match is None or match["name"] == RESERVED:
            rule = (
                f"each item is NAME:DIGEST, with a name other than {RESERVED} of at most 40 "
                "letters, digits, dots, dashes and underscores, and the SHA-256 of the token"
            )
            raise ConfigError(key, item, rule, _REMEDY)
        found.append(NamedToken(match["name"], match["digest"]))
    if len(found) > MOST:
        raise ConfigError(key, str(len(found)), f"there are at most {MOST}", "revoke some")
    for name, count in Counter(token.name for token in found).items():
        if count > OF_ONE_NAME:
            rule = f"{count} tokens have this name: at most {OF_ONE_NAME} are valid at once"
            raise ConfigError(key, name, rule, f"homeport token revoke {name} --old")
    return tuple(found)
