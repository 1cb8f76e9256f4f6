"""How long a container waits after a failure before it is placed again.

PURE. Two reasons to wait, both of which spare a fault that lasts from using up every retry at once:

* the last retry of a container that has a home waits for
  ``cluster-manager.container.preferred-host.last.retry.delay.ms`` (samza-behaviours 4.7); all
  earlier ones are at once;
* a launch that failed waits twice as long each time, from a second up to half a minute; a launcher
  that is permitted to run the container ends the series. How often is bounded by the retry keys,
  where Samza has no bound. Where the host is lost nothing waits: another host is asked.
"""

from __future__ import annotations

from homeport.appmaster.allocation.state import AllocatorSettings, ContainerState, Happening

LAUNCH_RETRY_MS = 1_000
LAUNCH_RETRY_MAX_MS = 30_000

_LONGEST_SERIES = 6
"""From here on a rest after a failed launch grows no more, nor does the count of them."""


def delay_ms(settings: AllocatorSettings, failed: ContainerState, happening: Happening) -> int:
    """Milliseconds; 0: at once. ``failed`` already counts this failure, which was charged."""
    if happening is Happening.LAUNCH_FAILED:
        rest_ms = settings.launch_retry_ms << max(0, failed.launch_failures - 1)
        return min(rest_ms, LAUNCH_RETRY_MAX_MS)
    is_last = failed.failures == settings.retry_count
    return settings.last_retry_delay_ms if is_last and failed.home is not None else 0


def longer_series(container: ContainerState) -> int:
    """``launch_failures`` after one more; bounded, so that it is so without a limit of retries."""
    return min(container.launch_failures + 1, _LONGEST_SERIES)
