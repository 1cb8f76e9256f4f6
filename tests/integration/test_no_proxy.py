"""A proxy in the environment stays out of the way between a job's own processes."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from homeport.appmaster.yarn import skein_resource_manager
from homeport.appmaster.yarn.skein_driver import import_skein


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """What the proxy that the environment names gets."""
    found: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("http_proxy", "https_proxy", "grpc_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for name in ("no_proxy", "no_grpc_proxy"):
            monkeypatch.delenv(name, raising=False)

        def serve() -> None:
            with suppress(OSError):  # the end of the test closes it
                while True:
                    client, _ = proxy.accept()
                    with client:
                        found.append(client.recv(200))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield found
        proxy.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("kind", ["driver", "application master"])
def test_skeins_channels_pass_no_proxy(
    kind: str, asked: list[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first thing that the end of a channel hears is the handshake of TLS, from its client."""
    monkeypatch.setenv("SKEIN_CONFIG", str(tmp_path))
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(tmp_path))
    skein = import_skein(os.environ)
    security = skein.Security.new_credentials()
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as end:
        end.settimeout(30)
        address = f"127.0.0.1:{end.getsockname()[1]}"

        monkeypatch.setattr(skein.Security, "from_default", lambda: security)

        def call() -> None:
            with suppress(skein.exceptions.ConnectionError):  # nothing answers it
                if kind == "driver":
                    skein.Client(address=address, security=security)
                else:
                    skein_resource_manager.connect("application_1_1", address).get_specification()

        caller = threading.Thread(target=call, daemon=True)
        caller.start()
        client, _ = end.accept()
        with client:
            heard.append(client.recv(1))
    caller.join(30)
    assert not caller.is_alive()
    assert heard == [b"\x16"]
    assert asked == []
