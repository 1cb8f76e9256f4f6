"""Identities. Each is a type of its own and none is ever parsed out of another's text.

PURE. A processor's role is a field of its model; nothing may be read out of the form of an id.
"""

from collections.abc import Collection
from typing import NewType

ProcessorId = NewType("ProcessorId", str)
"""Logical container: "0", "1", a standby "0-0"."""

TaskName = NewType("TaskName", str)
"""Unit of work and state: "Partition 3"."""

ResourceId = NewType("ResourceId", str)
"""One YARN container granted to us: "container_1700000000000_0001_01_000002"."""

RequestId = NewType("RequestId", int)
"""One request for a resource; a counter in the allocator's state."""

Host = NewType("Host", str)
"""A machine, in lower case, as the RM's node report names it."""


def host_of(name: str) -> Host:
    """Return the one spelling of a host name that is ever compared."""
    return Host(name.strip().lower())


def known_as(host: Host, hosts: Collection[Host]) -> Host:
    """Return the one of ``hosts`` that ``host`` names, perhaps by its short or its full name.

    A name that fits none of them, or several, stays as it is.
    """
    fitting = [h for h in hosts if h.startswith(f"{host}.") or host.startswith(f"{h}.")]
    return fitting[0] if len(fitting) == 1 and host not in hosts else host
