"""Which configuration values are secret, by the names of their keys, and which hold a secret.

PURE. The one rule, used wherever configuration is shown: HTTP, logs, errors, command lines. A key
that is wrongly taken for a secret costs a look at the file; one that is wrongly shown costs a
password: so the rule is wide. It covers ``hadoop.security.sensitive-config-keys`` and
``spark.redaction.regex`` as Hadoop and Spark set them by default, and the secrets of Kafka's
clients.
"""

import re
from collections.abc import Iterable

from homeport.config.secret_values import MASK, masked_text

_PREFIX = "sensitive."
_KEY_OF = (
    "access|account|aes|api|auth|cipher|client|encryption|hmac|license|master|rsa|secret|session|"
    "shared|signing|ssh|storage|subscription|symmetric|tls"
)
_SECRET = re.compile(
    "authorization|basic[.]auth$|connection[.]?string|contrase|cookie|credential|geheim|kennwort|"
    "mnemonic|mot[.]?de[.]?passe|oauthbearer[.]config|passcode|passkey|passphrase|passw0rd|passwd|"
    "passwor[dt]|private[.]?key|sasl[.]jaas|secret|signature|"
    "ssl[.]key|token(?!iz)|user[.]?info|webhook|"
    rf"(?:{_KEY_OF})keys?\d*(?:id)?\b|\b(?:{_KEY_OF})[.]keys?\d*\b|"
    r"\b(?:bearer|creds?|dsn|jwt|psk|sas|sig|t?otp)\d*\b|pwd\d*\b|"
    r"(?:\b|bind|db|root|user)p(?:in|uk|w|sw)\d*\b|\b(?:key|store|db|user)?pass\d*\b"
)
_PLAIN = re.compile(
    r"[.](?:changelog|class|deserializer|enabled|factory|ms|path|schema|serde|serializer)$"
)
"""How keys end whose values are names, switches or times, whatever the rest of the key is called.

A store may be named ``account``: ``stores.account.key.serde`` is no account key.
"""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret(key: str) -> bool:
    """Return whether the value of ``key`` is shown only with the job's token.

    Case does not matter, and ``-``, ``_`` and the humps of ``camelCase`` count as dots.
    """
    dotted = key.replace("-", ".").replace("_", ".")
    spellings = {dotted.lower(), _HUMP.sub(".", dotted).lower()}
    if any(name.startswith(_PREFIX) for name in spellings):
        return True
    return any(_SECRET.search(n) for n in spellings) and not any(map(_PLAIN.search, spellings))


def shown_value(key: str, value: str) -> str:
    """Return ``value`` as it is shown without the job's token.

    All of it is masked where ``key`` names a secret. Else the secrets in it are: the password of a
    URL, and what is assigned to the name of a secret, as in ``-Dx.password=y``.
    """
    return MASK if is_secret(key) else without_secrets(value)


def without_secrets(text: str) -> str:
    """Return ``text`` with passwords, tokens and what is assigned to a secret's name masked."""
    return masked_text(text, is_secret)


def has_secret(key: str, value: str) -> bool:
    """Return whether anything of ``value`` is masked where it is shown."""
    return shown_value(key, value) != value


def warnings_of_overrides(overrides: Iterable[str]) -> tuple[str, ...]:
    """Return a line for each secret among ``overrides``, which any local user can read.

    The value is not in it.
    """
    items = (item.partition("=") for item in overrides)
    names = [key.strip() for key, _, value in items if has_secret(key.strip(), value)]
    return tuple(
        f"{name} is on the command line, where everybody on this machine can read it: "
        "put it into the properties file"
        for name in dict.fromkeys(names)
    )
