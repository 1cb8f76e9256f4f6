"""Names and addresses of a cluster's own network, and what is said where it cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest
from another_user import unprivileged

from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.net import network
from homeport.local_cluster.net.addresses import Addresses
from homeport.local_cluster.net.network import Network


def _network(*nodes: str) -> Network:
    numbered = {node: f"10.70.3.{11 + index}" for index, node in enumerate(nodes)}
    return Network("hpabc", Addresses("10.70.3", numbered, {}, rm="10.70.3.3"))


def test_places_of_a_cluster_with_and_without_nodes() -> None:
    """The broker, with nodes the ResourceManager too, and the client beyond the hub."""
    assert _network().places == {"kafka": "10.70.3.2", "client": "10.70.3.253"}
    assert list(_network("nm1", "nm2").places) == ["kafka", "rm", "nm1", "nm2", "client"]
    assert _network("nm1").namespace("nm1") == "hpabc-nm1"
    assert _network("nm1").namespace("client") == "hpabc-hub"


def test_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One line: what is missing, what to install, and what does without."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(network, "_SYSTEM_FOLDERS", str(tmp_path))
    for name in ("ip", "nsenter", "unshare"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(ClusterError) as error:
        network.check()
    assert str(error.value) == (
        "nodes with a network of their own need iptables, which is not installed; install it "
        "(Debian: apt-get install iptables) or start the cluster on loopback addresses, without "
        "namespaces"
    )


def test_a_user_without_the_right_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, with what does without."""
    monkeypatch.setattr(network, "_found", lambda name: f"/sbin/{name}")
    with unprivileged(), pytest.raises(ClusterError, match=r"only root .* or on loopback addr"):
        network.check()
