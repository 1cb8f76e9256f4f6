"""Checks the clocks of the cluster's machines against this machine's. PURE.

No lease and no fence depends on them; event time, retention, the validity of a store by file time,
certificates and Kerberos do.
"""

from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

from homeport.appmaster.doctor.finding import Check, Finding

WARNING_S = 2.0
"""No less: an HTTP date has whole seconds."""
ERROR_S = 300.0
"""With this difference Kerberos refuses tickets."""


def ahead_s(date: str, before_s: float, after_s: float) -> float | None:
    """Return how many seconds a server's clock is ahead of ours; None: its date cannot be read.

    A negative number means that it is behind. The real difference is that number or larger.
    ``date``: the HTTP header, in whole seconds. ``before_s``, ``after_s``: our clock before the
    request and after the answer.
    """
    try:
        begun_s = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    if begun_s > after_s:
        return begun_s - after_s
    return min(0.0, begun_s + 1.0 - before_s)


def check_clocks(ahead: Mapping[str, float | None]) -> Iterator[Finding]:
    """Check the clocks; ``ahead``: {machine: its result of ``ahead_s``}."""
    for machine, seconds in sorted(ahead.items()):
        if seconds is None:
            yield Check("clocks", machine).unknown("it does not say the time")
        else:
            yield clock("clocks", machine, seconds)


def clock(check: str, machine: str, ahead_s: float, digits: int = 0) -> Finding:
    """Return the finding of a clock that is ahead by ``ahead_s`` or more."""
    side = "ahead of" if ahead_s > 0 else "behind"
    found = f"{abs(ahead_s):.{digits}f} s or more {side} this machine's clock"
    remedy = "synchronize both with NTP (chrony or systemd-timesyncd)"
    of_machine = Check(check, machine)
    if abs(ahead_s) >= ERROR_S:
        return of_machine.error(found, remedy)
    if abs(ahead_s) >= WARNING_S:
        return of_machine.warning(found, remedy)
    return of_machine.ok(f"within {WARNING_S:g} s of this machine's clock")
