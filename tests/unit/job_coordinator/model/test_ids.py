"""Names of hosts: one spelling, and the short and the full name of one machine."""

import pytest

from homeport.job_coordinator.model.ids import Host, host_of, known_as


def test_a_host_has_one_spelling() -> None:
    """Whatever its writer made of it."""
    assert host_of(" NM1.Example ") == "nm1.example"


@pytest.mark.parametrize(
    ("name", "hosts", "known"),
    [
        ("nm1", ["nm1.example", "nm2.example"], "nm1.example"),
        ("nm1.example", ["nm1", "nm2"], "nm1"),
        ("nm1", ["nm1", "nm1.example"], "nm1"),
        ("nm1", ["nm1.one", "nm1.two"], "nm1"),
        ("nm1", ["nm10.example", "nm11"], "nm1"),
        ("nm3", [], "nm3"),
    ],
)
def test_a_host_is_known_where_one_alone_fits(name: str, hosts: list[str], known: str) -> None:
    """Its name stays where it is a host's own, or fits none of them, or several."""
    assert known_as(Host(name), [Host(host) for host in hosts]) == known
