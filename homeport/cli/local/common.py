"""What the commands of ``homeport local`` have in common."""

import os
from typing import Annotated

import typer

from homeport.local_cluster.cluster import NAME_VARIABLE, LocalCluster

DEFAULT_NAME = "dev"

Name = Annotated[str, typer.Option("--name", envvar=NAME_VARIABLE, help="The cluster's name.")]


def running(name: str) -> LocalCluster:
    """Return the cluster that runs under this name; ClusterError where there is none."""
    return LocalCluster.attach(name)


def show(line: str) -> None:
    """Print a line for people, now."""
    print(line, flush=True)


def named(name: str) -> str:
    """Return the option that names the cluster in a command to be typed."""
    return f" --name {name}" if os.environ.get(NAME_VARIABLE) or name != DEFAULT_NAME else ""
