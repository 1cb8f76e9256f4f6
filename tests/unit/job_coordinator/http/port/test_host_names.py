"""Whether a request asks for this server, by the header ``Host``."""

from __future__ import annotations

import pytest

from homeport.job_coordinator.http.port.host_names import is_own, names_of

NAMES = names_of(["NM1.example.com.", "alias", "10.0.0.7", "fd00::7"])
FURTHER = names_of(["jobs.example.com"])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8080",
        "192.168.7.9:1",
        "[::1]",
        "[::1]:8080",
        "[fe80::1%25eth0]:80",
        "[::ffff:10.0.0.1]",
        "localhost",
        "LocalHost.:80",
        "nm1.example.com:8080",
        "NM1.EXAMPLE.COM.",
        "nm1:80",
        "alias:",
        " alias ",
        "jobs.example.com",
        "jobs",
    ],
)
def test_an_address_or_a_name_of_this_machine_is_its_own(host: str) -> None:
    """With any port, as a tunnel has another one; a long name by its first part too."""
    assert is_own(host, NAMES, FURTHER)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8080",
        "nm1.evil.example",
        "nm1.example.com.evil.example",
        "127.0.0.1.evil.example",
        "10",
        "localhost.evil.example",
        "localhost@evil.example",
        "evil.example/127.0.0.1",
        "127.0.0.1, evil.example",
        "[evil.example]",
        "[::1",
        "[::1]x",
        "::1.evil",
        "nm1:80:80",
        "nm1:eighty",
        "nm1\u212a",
        "0x7f.1",
    ],
)
def test_any_other_name_is_not(host: str) -> None:
    """Also one that begins or ends as an own one does."""
    assert not is_own(host, NAMES, FURTHER)


def test_without_a_name_there_are_addresses_alone() -> None:
    """And this machine as it calls itself."""
    assert is_own("localhost")
    assert is_own("1.2.3.4")
    assert not is_own("nm1")
