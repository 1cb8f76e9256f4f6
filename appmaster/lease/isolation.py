"""When an isolated attempt is over: when YARN has given it up, and no lease is left.

Decides only.

Theory. An attempt whose machine is cut off sees no higher rank, which would make it stop. It does
no harm: its leases run out, and it can write nothing. But it need not stay for ever. Kafka alone
may be away for any time, and so may the ResourceManager: the job then comes back to this attempt.
Where both are silent, it is rather the attempt that is cut off; and when that has lasted until
the ResourceManager must have given up the node, ending costs nothing: another attempt runs, or
will, and this one's end is not counted as a failure. No container of it is left by then either, as
G + L + M have passed.
"""

from __future__ import annotations

from homeport.config.number_text import whole_of

NODE_EXPIRY_KEY = "yarn.nm.liveness-monitor.expiry-interval-ms"
_NODE_EXPIRY_MS = 600_000
"""YARN's default."""


def limit_ms(unseen_ms: int, node_expiry: str | None) -> int:
    """How long an attempt has no answer before it ends.

    Args:
        unseen_ms: how long a container can live that an isolated attempt has permitted: G + L + M.
        node_expiry: of the ResourceManager's configuration; None where it is not known.
    """
    try:
        return max(unseen_ms, whole_of(node_expiry or ""))
    except ValueError:
        return max(unseen_ms, _NODE_EXPIRY_MS)
