"""Makes the token and the certificate with which one server answers, generation by generation.

SHELL around ``job_access``; it runs on the server's event loop.
"""

import datetime as dt
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from homeport.config.errors import WireError
from homeport.job_coordinator.access.job_access import JobSecret, ShownAccess, require_nonce

_FORMER = 100
"""Number of former generations whose tokens are recognised as exchanged."""

_log = logging.getLogger(__name__)

_LIFE = dt.timedelta(days=36500)
"""Longer than any job; the next submission has another certificate."""


class ServedAccess:
    """The token that a server requires, and the access that it shows.

    ``token``: the submission's own, of generation 0; white space around it does not count.
    ``secret``: None: there is only one generation. ``tls``: None: http; ``certificate``: its own,
    as PEM. ``on_certificate`` gets each new certificate.
    """

    def __init__(
        self,
        token: str,
        secret: JobSecret | None = None,
        tls: ssl.SSLContext | None = None,
        certificate: str | None = None,
        on_certificate: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.token = token.strip().encode()
        if not self.token:
            raise ValueError("the job's token is empty: everyone would hold it")
        self._first = self.token
        self.former: frozenset[bytes] = frozenset()
        self.tls = tls
        self._secret = secret
        self._shown = ShownAccess(0, certificate)
        self._on_certificate = on_certificate

    @property
    def certificate(self) -> str | None:
        """The certificate in use, as PEM; None: http."""
        return self._shown.certificate

    def exchange(self, generation: int) -> None:
        """Change to a later ``generation``; without a secret, change nothing.

        Open connections stay; ``former`` has the tokens that were valid before.
        """
        if self._secret is None or generation <= self._shown.generation:
            return
        certificate = None if self.tls is None else _new_certificate(self.tls)
        last = range(max(1, generation - _FORMER), generation)
        earlier = (self._secret.token(number).encode() for number in last)
        self.former = frozenset({self._first, *earlier})
        self.token = self._secret.token(generation).encode()
        self._shown = ShownAccess(generation, certificate)
        _log.info("the job's token is that of generation %d now", generation)
        if certificate is not None:
            self._on_certificate(certificate)

    def answer(self, nonce: str | None, address: str) -> Mapping[str, Any]:
        """Return the access for a caller at ``address``, with its proof.

        WireError: the nonce is wrong, or there is no secret for a proof.
        """
        if self._secret is None:
            raise WireError("this job's token is not exchanged while it runs")
        shown = replace(self._shown, address=address)
        return {**asdict(shown), "proof": self._secret.proof(require_nonce(nonce), shown)}


def _new_certificate(tls: ssl.SSLContext) -> str:
    certificate, key = make_certificate("homeport")
    # In memory: a full disk must not end a server.
    with os.fdopen(os.memfd_create("homeport-access"), "wb", buffering=0) as file:
        file.write(certificate + key)
        tls.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return certificate.decode()


def make_certificate(name: str) -> tuple[bytes, bytes]:
    """Make a self-signed certificate for ``name`` and its private key, both as PEM.

    ``name`` is for people: no client looks at it.
    """
    # Only a submission with TLS needs them, and they take 0.1 s.
    from cryptography import x509  # noqa: PLC0415 - as said above
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as above

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:64])])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))  # clocks differ
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return certificate.public_bytes(pem), key.private_bytes(pem, form, secret)
