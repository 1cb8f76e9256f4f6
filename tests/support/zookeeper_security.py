"""A ZooKeeper server that asks clients for a user and a certificate, and what they show it."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from zookeeper_server import ZooKeeperServer, zookeeper_server

_LIFE = dt.timedelta(days=2)
_JAAS = """\
Server {{
  org.apache.zookeeper.server.auth.DigestLoginModule required
{users};
}};
"""


@dataclass(frozen=True)
class Pair:
    """A key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Their PEM files: (certificate, key)."""
        certificate, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
        certificate.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        key.write_bytes(
            self.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        key.chmod(0o600)
        return certificate, key


def make_pair(name: str, by: Pair | None = None) -> Pair:
    """A certificate for ``name`` at 127.0.0.1, which ``by`` has signed; None: an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
    )
    return Pair(key, builder.sign(key if by is None else by.key, hashes.SHA256()))


@dataclass(frozen=True)
class Secured:
    """A server with TLS that knows clients by certificate, and lets in users of SASL alone.

    ``files``: {name: (certificate, key)} of ``client``, which its authority has signed, and
    ``stranger``, which another one has. ``ca``: of its authority.
    """

    server: ZooKeeperServer
    ca: Path
    files: dict[str, tuple[Path, Path]]

    def tls(self, name: str = "client") -> dict[str, str]:
        """The keys of a job that shows that certificate; "": none."""
        keys = {
            "job.coordinator.zk.tls.enabled": "true",
            "job.coordinator.zk.tls.ca.path": str(self.ca),
        }
        if name:
            certificate, key = self.files[name]
            keys["job.coordinator.zk.tls.certificate.path"] = str(certificate)
            keys["job.coordinator.zk.tls.key.path"] = str(key)
        return keys


def user(name: str, variable: str, scheme: str = "DIGEST-MD5") -> dict[str, str]:
    """The keys of a job that shows this user, whose password the variable has."""
    prefix = "job.coordinator.zk.auth"
    return {
        f"{prefix}.scheme": scheme,
        f"{prefix}.username": name,
        f"{prefix}.password": f"env:{variable}",
    }


@contextmanager
def secured_zookeeper(
    folder: Path, users: dict[str, str], options: Sequence[str] = ()
) -> Iterator[Secured]:
    """The server for a block. ``users``: {name: password} of SASL; ``options``: of its JVM."""
    authority, foreign = make_pair("authority"), make_pair("foreign")
    files = {
        "server": make_pair("server", authority).write(folder, "server"),
        "client": make_pair("client", authority).write(folder, "client"),
        "stranger": make_pair("stranger", foreign).write(folder, "stranger"),
    }
    ca, _ = authority.write(folder, "ca")
    certificate, key = files["server"]
    both = folder / "server-both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    jaas = folder / "jaas.conf"
    lines = "\n".join(f'  user_{name}="{password}"' for name, password in users.items())
    jaas.write_text(_JAAS.format(users=lines), encoding="utf-8")
    more = (
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "enforce.auth.enabled=true",
        "enforce.auth.schemes=sasl",
        f"ssl.keyStore.location={both}",
        "ssl.keyStore.type=PEM",
        f"ssl.trustStore.location={ca}",
        "ssl.trustStore.type=PEM",
        "ssl.clientAuth=need",
    )
    login = f"-Djava.security.auth.login.config={jaas}"
    with zookeeper_server(folder, more, (login, *options), has_tls=True) as server:
        yield Secured(server, ca, files)
