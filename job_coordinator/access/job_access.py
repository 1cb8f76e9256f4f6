"""What the programs of one submission show each other, and how it changes while they run.

PURE. A submission makes a token and a secret. The token goes with each request; the secret goes
with none. From it every program derives the tokens of later generations, and knows a server that
has a new certificate: a token or a certificate that others have got is of no use after the next
generation has begun.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from homeport.config.errors import WireError
from homeport.job_coordinator.model.json_values import required_field, shown
from homeport.job_coordinator.model.wire_form import json_text, value_of

ACCESS_ROUTE: Final = "/v1/access"
_NONCE: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ShownAccess:
    """What a server shows of itself to every caller.

    ``certificate``: as PEM; None: http. ``address``: that the request came to, as ``address_text``.
    """

    generation: int
    certificate: str | None = None
    address: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class JobSecret:
    """What a submission gives to its programs, and no program ever sends."""

    value: bytes = field(repr=False)

    def token(self, generation: int) -> str:
        """Return the token of ``generation``, from 1 on; the first one is the submission's."""
        return base64.urlsafe_b64encode(self._code(f"token {generation}")).decode().rstrip("=")

    def proof(self, nonce: str, access: ShownAccess) -> str:
        """Return what a holder of the secret alone can answer to ``nonce`` about ``access``."""
        return self._code(f"access {nonce} {json_text(access)}").hex()

    def proven(self, nonce: str, body: Mapping[str, Any]) -> ShownAccess:
        """Return what ``body`` shows.

        Raises:
            WireError: the server that sent it does not have the secret, or a field is wrong.
        """
        access = value_of(ShownAccess, body, "the access that the server shows")
        proof = required_field(body, "proof", str)
        if not hmac.compare_digest(proof.encode(), self.proof(nonce, access).encode()):
            raise WireError("the server does not have the secret of this submission")
        return access

    def _code(self, text: str) -> bytes:
        return hmac.digest(self.value, text.encode(), hashlib.sha256)


def address_text(socket_name: object) -> str:
    """Return host and port of one end of a connection, as both its ends write it."""
    return ":".join(map(str, socket_name[:2])) if isinstance(socket_name, tuple) else ""


def require_nonce(text: str | None) -> str:
    """Return the nonce of a request; WireError where it is none of ours."""
    if text is None or _NONCE.fullmatch(text) is None:
        raise WireError(f"nonce must be 32 hexadecimal digits, not {shown(text)}")
    return text
