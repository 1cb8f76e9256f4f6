"""What the commands of ``homeport local`` have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from homeport.local_cluster.cluster import LocalCluster

DEFAULT_NAME = "dev"

Name = Annotated[str, typer.Option("--name", help="The cluster's name.")]
Node = Annotated[str, typer.Argument(metavar="NODE", help="nm1, nm2...")]
Broker = Annotated[
    int | None,
    typer.Option("--broker", metavar="N", help="This one only, 1 to the last; default: all."),
]
Orderly = Annotated[bool, typer.Option("--orderly", help="Stop it by SIGTERM, in order.")]
PLACES = "nm1, nm2..., rm, kafka, client"
"""What has a network that can be cut."""
Place = Annotated[str, typer.Argument(metavar="PLACE", help=PLACES)]
Places = Annotated[list[str], typer.Argument(metavar="PLACE...", help=PLACES)]


def running(name: str) -> LocalCluster:
    """Return the cluster that runs under this name; ClusterError where there is none."""
    return LocalCluster.attach(name)


def show(line: str) -> None:
    """Print a line for people, now."""
    print(line, flush=True)


def named(name: str) -> str:
    """Return the option that names the cluster in a command to be typed."""
    return "" if name == DEFAULT_NAME else f" --name {name}"
