"""What can go wrong, in one line that names the remedy."""

from __future__ import annotations


class DockerError(Exception):
    """The engine, the image or the cluster is not as it must be."""
