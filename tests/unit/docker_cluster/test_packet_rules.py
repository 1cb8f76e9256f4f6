"""Rules of packets that a killed engine has left."""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docker_cluster import packet_rules

_DEAD = "-A POSTROUTING -s 172.28.64.0/24 ! -o br-0123456789ab -j MASQUERADE"
_LIVING = "-A POSTROUTING -s 172.28.65.0/24 ! -o br-ba9876543210 -j MASQUERADE"
_OTHERS = "-A POSTROUTING -s 10.0.0.0/8 -o eth0 -j MASQUERADE"


def test_only_rules_of_bridges_that_are_gone_are_dead() -> None:
    """Also those that name it as the way in; another program's rules stay."""
    living = {"lo", "eth0", "br-ba9876543210"}
    forward = "-A FORWARD -i br-0123456789ab ! -o br-0123456789ab -j ACCEPT"
    assert [packet_rules.is_dead(r, living) for r in (_DEAD, forward)] == [True, True]
    assert [packet_rules.is_dead(r, living) for r in (_LIVING, _OTHERS)] == [False, False]


def test_a_network_whose_addresses_are_translated_is_not_free() -> None:
    """Whatever program translates them."""
    rules = ["-P POSTROUTING ACCEPT", _DEAD, _LIVING, _OTHERS]
    nets = ("172.28.64.0/24", "172.28.65.0/24", "10.0.0.0/8")
    assert packet_rules.sources(rules) == [ipaddress.ip_network(net) for net in nets]


_IN_A_NETWORK_OF_ITS_OWN = """
import subprocess, sys
from docker_cluster import packet_rules
for rule in sys.argv[1:]:
    subprocess.run(["iptables", "-w", "-t", "nat", *rule.split()], check=True)
print(*map(str, packet_rules.translated()))
packet_rules.clear_dead()
print(*map(str, packet_rules.translated()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace is made by root")
@pytest.mark.skipif(not shutil.which("iptables"), reason="iptables is not installed")
def test_an_engine_of_ours_starts_without_the_rules_of_dead_bridges() -> None:
    """And leaves those of other programs."""
    program = ["unshare", "-n", sys.executable, "-c", _IN_A_NETWORK_OF_ITS_OWN, _DEAD, _OTHERS]
    scripts = Path(packet_rules.__file__).parents[1]
    done = subprocess.run(
        program,
        env={**os.environ, "PYTHONPATH": str(scripts)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["172.28.64.0/24 10.0.0.0/8", "10.0.0.0/8"]
