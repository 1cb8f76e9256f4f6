"""What Docker engines do to the machine's network: rules of packets, bridges, forwarding.

An engine that was killed leaves its rules. One that translates addresses of a network which is
given to a new bridge makes each container look like the gateway to the others, and Kerberos refuses
it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

OWN_BRIDGE = "172.31.250.1/24"
"""The address of the default bridge of an engine of ours; no container uses it."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_FORWARDS = Path("/proc/sys/net/ipv4/ip_forward")
_INTERFACES = Path("/sys/class/net")
_MARKS = ("DOCKER", "docker0", OWN_BRIDGE.rpartition(".")[0])
"""One of them is in each rule that an engine adds for itself."""
_CHAINS = (("filter", ("FORWARD",)), ("nat", ("PREROUTING", "OUTPUT", "POSTROUTING")))
_BRIDGE = re.compile(r"\bbr-[0-9a-f]{12}\b")
"""As engines name the bridge of a network."""
_SOURCE = re.compile(r"-s (\S+/\d+) .*-j MASQUERADE\b")


def note(path: Path) -> None:
    """Write what an engine changes of the machine's network into the file, as it is now."""
    policy = "ACCEPT"
    for line in _iptables("-S", "FORWARD"):
        if line.startswith("-P FORWARD "):
            policy = line.split()[-1]
    forwards = _FORWARDS.read_text(encoding="ascii").strip()
    path.write_text(json.dumps({"policy": policy, "forwards": forwards}), encoding="utf-8")


def restore(path: Path) -> None:
    """Remove the engine's bridge and its rules, and put the rest back as it was noted."""
    _delete(lambda rule: any(mark in rule for mark in _MARKS))
    for table, _ in _CHAINS:
        own = [r.split()[1] for r in _iptables("-t", table, "-S") if r.startswith("-N DOCKER")]
        for option in ("-F", "-X"):
            for chain in own:
                _iptables("-t", table, option, chain)
    subprocess.run(["ip", "link", "del", "docker0"], capture_output=True, check=False)
    with contextlib.suppress(OSError, ValueError):
        noted = json.loads(path.read_text(encoding="utf-8"))
        _iptables("-P", "FORWARD", noted["policy"])
        _FORWARDS.write_text(noted["forwards"], encoding="ascii")
        path.unlink()


def clear_dead() -> None:
    """Remove the rules of bridges that are gone, as those of an engine that was killed.

    An engine that comes back adds the rules of its networks again.
    """
    living = {path.name for path in _INTERFACES.iterdir()} if _INTERFACES.exists() else set()
    _delete(lambda rule: is_dead(rule, living))


def is_dead(rule: str, living: set[str]) -> bool:
    """Return whether the rule is of an engine's bridge that is not among the ``living`` ones."""
    return any(bridge not in living for bridge in _BRIDGE.findall(rule))


def translated() -> list[Network]:
    """Return the networks whose addresses are translated here, as far as this user sees rules."""
    return sources(_iptables("-t", "nat", "-S", "POSTROUTING"))


def sources(rules: Iterable[str]) -> list[Network]:
    """Return the networks that these rules translate the addresses of."""
    found = (_SOURCE.search(rule) for rule in rules)
    return [ipaddress.ip_network(match[1], strict=False) for match in found if match]


def routed() -> list[Network]:
    """Return the networks that this machine has a way to, the default route left out."""
    found: list[Network] = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]
        for fields in (line.split() for line in lines):
            address, mask = (int.from_bytes(bytes.fromhex(fields[i]), "little") for i in (1, 7))
            if mask:
                found.append(ipaddress.IPv4Network((address, mask.bit_count())))
    return found


def _delete(is_one: Callable[[str], bool]) -> None:
    for table, chains in _CHAINS:
        for chain in chains:
            for rule in _iptables("-t", table, "-S", chain):
                if rule.startswith("-A") and is_one(rule):
                    _iptables("-t", table, "-D", *shlex.split(rule)[1:])


def _iptables(*arguments: str) -> list[str]:
    """The lines that it prints; none where it fails."""
    try:
        command = ["iptables", "-w", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return done.stdout.splitlines()
