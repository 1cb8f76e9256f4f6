"""The token and the certificate of one submission, and their exchange while the job runs.

PURE. A submission makes a token and a secret. Each request has the token; none has the secret. With
the secret every program derives the tokens of later generations, and recognises a server with a new
certificate. So a stolen token or certificate is useless after the next generation has begun.
"""

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
    """The access that a server shows to every caller.

    ``certificate``: the server's certificate as PEM; None: http. ``address``: the server's end of
    the connection, as ``address_text`` writes it.
    """

    generation: int
    certificate: str | None = None
    address: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class JobSecret:
    """The secret that a submission gives to its programs; no program ever sends it."""

    value: bytes = field(repr=False)

    def token(self, generation: int) -> str:
        """Return the token of ``generation``, from 1 on; the submission's own is generation 0."""
        return base64.urlsafe_b64encode(self._code(f"token {generation}")).decode().rstrip("=")

    def proof(self, nonce: str, access: ShownAccess) -> str:
        """Return the proof of ``access`` for ``nonce``, which needs the secret."""
        return self._code(f"access {nonce} {json_text(access)}").hex()

    def proven(self, nonce: str, body: Mapping[str, Any]) -> ShownAccess:
        """Return the access in ``body``.

        WireError: its server does not have the secret, or a field is wrong.
        """
        access = value_of(ShownAccess, body, "the access that the server shows")
        proof = required_field(body, "proof", str)
        if not hmac.compare_digest(proof.encode(), self.proof(nonce, access).encode()):
            raise WireError("the server does not have the secret of this submission")
        return access

    def _code(self, text: str) -> bytes:
        return hmac.digest(self.value, text.encode(), hashlib.sha256)


def address_text(socket_name: object) -> str:
    """Return host and port of one end of a connection, in the same form at both ends."""
    return ":".join(map(str, socket_name[:2])) if isinstance(socket_name, tuple) else ""


def require_nonce(text: str | None) -> str:
    """Return the nonce of a request; WireError if it has another form than ours."""
    if text is None or _NONCE.fullmatch(text) is None:
        raise WireError(f"nonce must be 32 hexadecimal digits, not {shown(text)}")
    return text
