"""What goes wrong around a local cluster, in words for its user."""

from __future__ import annotations

from homeport.config.errors import HomeportError


class ClusterError(HomeportError):
    """A local cluster cannot do what the command requests.

    The first line of the message says what is wrong and what to do; further lines, if any, are the
    end of a log.
    """


class ClusterRunningError(ClusterError):
    """A cluster of that name is up already."""
