"""Errors of a local cluster."""

from homeport.config.errors import HomeportError


class ClusterError(HomeportError):
    """A local cluster cannot do what the command requests.

    The first line of the message has the fault and the remedy; further lines are the end of a log.
    """


class ClusterRunningError(ClusterError):
    """A cluster of that name is up already."""
