"""Keys, certificates and passwords of a cluster with locks, made for each cluster.

Each service has a folder of its own, which its container alone mounts. Keytabs are made by the KDC.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from docker_cluster import secure_settings
from homeport.local_cluster.hadoop_conf import site_xml

USERS = ("flights", "producer", "reader")
"""Of Kafka: the job, the program that writes its input, and the one that checks its output."""
ADMIN = "admin"
_LIFE = dt.timedelta(days=3650)
_WEB = ("nn", "dn")


@dataclass(frozen=True)
class _Signed:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def pem(self) -> bytes:
        """Return key and certificate."""
        return self.key_pem() + self.certificate_pem()

    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def make(folder: Path, addresses: Mapping[str, str], services: Iterable[str]) -> None:
    """Make in ``folder`` a folder for each service, and one for the administrator.

    ``addresses``: {service: its address in the cluster's network}.
    """
    folder.mkdir(mode=0o700, parents=True)
    authority = _signed("homeport", None, ())
    for service in (*services, ADMIN):
        (folder / service).mkdir()
        (folder / "keytabs" / service).mkdir(parents=True)
        (folder / service / "ca.pem").write_bytes(authority.certificate_pem())
    broker = _signed("kafka", authority, ("kafka", "localhost", addresses["kafka"], "127.0.0.1"))
    (folder / "kafka" / "kafka.pem").write_bytes(broker.pem())
    admin = _signed(ADMIN, authority, ())
    (folder / ADMIN / "key.pem").write_bytes(admin.key_pem())
    (folder / ADMIN / "certificate.pem").write_bytes(admin.certificate_pem())
    for service in _WEB:
        _write_web(folder / service, _signed(service, authority, (service,)))
    for user in USERS:
        (folder / ADMIN / f"{user}.password").write_text(secrets.token_urlsafe(24))
        _write_user(folder, user, authority.certificate_pem().decode())


def _signed(name: str, by: _Signed | None, names: tuple[str, ...]) -> _Signed:
    """A key whose certificate ``by`` has signed; None: itself, as an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if names:
        known_as = x509.SubjectAlternativeName([_name(n) for n in names])
        builder = builder.add_extension(known_as, critical=False)
    return _Signed(key, builder.sign(key if by is None else by.key, hashes.SHA256()))


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write_web(folder: Path, own: _Signed) -> None:
    password = secrets.token_urlsafe(24)
    store = pkcs12.serialize_key_and_certificates(
        b"web",
        own.key,
        own.certificate,
        None,
        serialization.BestAvailableEncryption(password.encode()),
    )
    (folder / "web.p12").write_bytes(store)
    values = {
        "ssl.server.keystore.type": "pkcs12",
        "ssl.server.keystore.location": "/secrets/web.p12",
        "ssl.server.keystore.password": password,
        "ssl.server.keystore.keypassword": password,
    }
    (folder / "ssl-server.xml").write_text(site_xml(values), encoding="utf-8")


def _write_user(folder: Path, user: str, authority: str) -> None:
    """How the user reaches Kafka: librdkafka's properties, and Java's for a job's configuration."""
    password = (folder / ADMIN / f"{user}.password").read_text()
    client = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": "/secrets/ca.pem",
    }
    # The nodes have no file of it: the certificate itself goes with the configuration.
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{user}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.replace("\n", "\\n"),
    }
    job = {f"systems.kafka.consumer.{key}": value for key, value in java.items()}
    job["cluster-manager.jobcoordinator.tls.enabled"] = "true"
    job["yarn.kerberos.principal"] = f"homeport@{secure_settings.REALM}"
    job["yarn.kerberos.keytab"] = "/keytabs/homeport.keytab"
    for suffix, values in (("client", client), ("job", job)):
        text = "".join(f"{key}={value}\n" for key, value in values.items())
        (folder / "client" / f"{user}.{suffix}.properties").write_text(text, encoding="utf-8")
