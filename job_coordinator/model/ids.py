"""Identities. Each is a type of its own and none is ever parsed out of another's text.

PURE. A processor's role is a field of its model; nothing may be read out of the form of an id.
"""

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
