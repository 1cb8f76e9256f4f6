"""The certificate of one submission, by which its programs know the ApplicationMaster."""

from __future__ import annotations

import datetime as dt

_LIFE = dt.timedelta(days=36500)
"""Longer than any job; the next submission has another certificate."""


def make_certificate(name: str) -> tuple[bytes, bytes]:
    """A new self-signed certificate for ``name`` and its private key, both as PEM.

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
