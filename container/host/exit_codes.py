"""Exit codes of a stream container beyond 0 (finished) and 1 (failed)."""

EXIT_LEASE_LOST = 71
"""The lease has run out."""
EXIT_UNAVAILABLE = 72
"""Kafka or the AM was away: nothing is wrong with the container itself."""
EXIT_CUT_OFF = 73
"""Kafka has not answered on this host for so long that leases would have ended with it."""
EXIT_OVERTAKEN = 74
"""The coordinator stream has a newer epoch of the processor: this one must not begin."""
EXIT_DISK_FULL = 75
"""There was no room on a disk; its last line names the directory and how much is free."""
EXIT_TERMINATED = 143
"""The container, or its launcher, has ended after SIGTERM."""
