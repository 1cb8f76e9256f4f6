"""https of the job coordinator and of the lease keeper: real certificates on the loopback."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from coordinator_server import CHECK_IN, ORDER, TOKEN, Backend, Loop, Served, serving

from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.access.served_access import ServedAccess, make_certificate
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import LeaseAnswer, Renewal
from homeport.job_coordinator.http.pinned_tls import (
    CERTIFICATE_FILE_NAME,
    KEY_FILE_NAME,
    certificate_beside,
    server_context,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.private_files import private_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An AM's container: certificate and key of its submission."""
    certificate, key = make_certificate("counts_1")
    with private_folder(tmp_path) as own:
        own.write(CERTIFICATE_FILE_NAME, certificate)
        own.write(KEY_FILE_NAME, key)
    assert stat.S_IMODE((tmp_path / KEY_FILE_NAME).stat().st_mode) == 0o600
    return tmp_path


@pytest.fixture
def port(loop: Loop, folder: Path) -> Iterator[int]:
    """Where a server with TLS listens."""
    with serving(loop, Backend(), ServedAccess(TOKEN, tls=server_context(folder))) as served:
        yield served.port


def _trusted(folder: Path) -> str | None:
    return certificate_beside(folder / "homeport-token")


def test_who_has_the_certificate_is_served(port: int, folder: Path) -> None:
    """Reading and check-in; a client for another URL of the job trusts the same."""
    url = f"https://127.0.0.1:{port}/"
    client = CoordinatorClient(url, TOKEN, certificate=_trusted(folder))
    assert client.check_in(CHECK_IN) == ORDER
    assert client.at(url, 5.0).job_model() == client.job_model()


def test_another_certificate_is_not_trusted(port: int, caplog: pytest.LogCaptureFixture) -> None:
    """One line for the client, and no traceback for the server."""
    other = make_certificate("counts_1")[0].decode()
    client = CoordinatorClient(f"https://127.0.0.1:{port}/", TOKEN, certificate=other)
    with caplog.at_level(logging.INFO), pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY"):
        client.status()
    assert "Traceback" not in caplog.text


def test_without_the_certificate_nothing_is_sent() -> None:
    """The token goes to no server that is not known."""
    with pytest.raises(ConfigError, match="its certificate is not here; submit the job again"):
        CoordinatorClient("https://127.0.0.1:1/", TOKEN)
    with pytest.raises(ConfigError, match="no certificate"):
        CoordinatorClient("https://127.0.0.1:1/", TOKEN, certificate="nonsense")


def test_the_wrong_scheme_ends_in_one_line(
    port: int, served: Served, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Http to a server with TLS, and https to one without."""
    with caplog.at_level(logging.INFO):
        with pytest.raises(UnavailableError, match="no answer"):
            CoordinatorClient(f"http://127.0.0.1:{port}/", TOKEN).status()
        plain = f"https://127.0.0.1:{served.port}/"
        with pytest.raises(UnavailableError, match="no answer"):
            CoordinatorClient(plain, TOKEN, certificate=_trusted(folder)).status()
    assert "Traceback" not in caplog.text


def test_leases_are_renewed_over_tls(folder: Path) -> None:
    """The keeper has the same certificate."""
    one = Incarnation(ProcessorId("0"), 1)

    async def play() -> LeaseAnswer:
        table = LeaseTable(60_000, 0)
        keeper = LeaseServer(
            table,
            RenewalGuard(60_000, 0),
            lease_ms=60_000,
            attempt=1,
            access=ServedAccess(TOKEN, tls=server_context(folder)),
        )
        url = await keeper.start("127.0.0.1", 0, None)
        assert url.startswith("https://")
        client = CoordinatorClient(url, TOKEN, certificate=_trusted(folder))
        try:
            return (await asyncio.to_thread(client.renew, Renewal(1, one))).answer
        finally:
            await keeper.stop()

    assert isinstance(asyncio.run(play()), LeaseAnswer)


def test_a_container_without_tls_has_neither(tmp_path: Path) -> None:
    """The server speaks http; a damaged key is one line."""
    assert server_context(tmp_path) is None
    assert _trusted(tmp_path) is None
    (tmp_path / KEY_FILE_NAME).write_text("nonsense")
    with pytest.raises(ConfigError, match="no certificate with its key"):
        server_context(tmp_path)
