"""TLS between the programs of one submission: one certificate, which all clients know.

SHELL. The submission makes key and certificate. Only the ApplicationMaster's container gets the
key. A client trusts that one certificate and no authority, so it does not check the name in it.
"""

import ssl
from pathlib import Path

from homeport.config.errors import ConfigError
from homeport.job_coordinator.access.job_access import JobSecret

SECRET_FILE_NAME = "homeport-secret"  # noqa: S105 - the name of the file, not a secret
CERTIFICATE_FILE_NAME = "homeport-certificate.pem"
KEY_FILE_NAME = "homeport-key.pem"


def server_context(folder: Path) -> ssl.SSLContext | None:
    """Return the TLS of a server with the key and certificate in ``folder``; None without a key.

    ConfigError: key or certificate is damaged.
    """
    key = folder / KEY_FILE_NAME
    if not key.exists():
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(folder / CERTIFICATE_FILE_NAME, key)
    except (OSError, ssl.SSLError) as error:
        raise _damaged(folder / CERTIFICATE_FILE_NAME, error) from None
    return context


def url_at(address: tuple[str, int], context: ssl.SSLContext | None) -> str:
    """Return the URL of a server at ``address``, with this context."""
    host, port = address
    host = f"[{host}]" if ":" in host else host
    return f"{'http' if context is None else 'https'}://{host}:{port}/"


def certificate_beside(token_file: Path) -> str | None:
    """Return the certificate beside the job's token in a container; None: there is none."""
    path = token_file.with_name(CERTIFICATE_FILE_NAME)
    return path.read_text(encoding="ascii") if path.exists() else None


def client_context(certificate: str) -> ssl.SSLContext:
    """Return the TLS of a client that trusts this certificate alone.

    Args:
        certificate: the certificate as PEM.

    ConfigError: it is not a certificate.
    """
    context = _client_context()
    try:
        context.load_verify_locations(cadata=certificate)
    except (ssl.SSLError, ValueError) as error:
        raise _damaged(Path(CERTIFICATE_FILE_NAME), error) from None
    return context


def unverified_context() -> ssl.SSLContext:
    """Return TLS to any server, for one request whose answer proves itself."""
    context = _client_context()
    context.verify_mode = ssl.CERT_NONE
    return context


def _client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    return context


def secret_beside(token_file: Path) -> JobSecret | None:
    """Return the submission's secret beside the job's token in a container; None: none."""
    path = token_file.with_name(SECRET_FILE_NAME)
    return JobSecret(path.read_bytes()) if path.exists() else None


def _damaged(path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        str(path), None, f"it is no certificate with its key ({error})", "submit the job again"
    )
