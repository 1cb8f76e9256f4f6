"""``homeport local kill-node`` and the like: what can happen to a cluster, on request."""

from __future__ import annotations

from typing import Annotated

import typer

from homeport.cli.local.common import (
    DEFAULT_NAME,
    PLACES,
    Broker,
    Name,
    Node,
    Orderly,
    Place,
    Places,
    running,
    say,
)


def add_to(app: typer.Typer) -> None:
    """The commands of this module are commands of ``app``."""
    for name, command, summary in (
        ("kill-node", kill_node, "SIGKILL a NodeManager and all that it started"),
        ("kill-node-manager", kill_node_manager, "SIGKILL a NodeManager, not its containers"),
        ("start-node", start_node, "start the NodeManager of a killed node again"),
        ("pause-node", pause_node, "SIGSTOP a NodeManager and all that it started"),
        ("resume-node", resume_node, "SIGCONT all of a paused node"),
        ("stop-kafka", stop_kafka, "SIGKILL the broker; its data is left"),
        ("start-kafka", start_kafka, "start the broker again, with its data"),
        ("pause-kafka", pause_kafka, "SIGSTOP the broker"),
        ("resume-kafka", resume_kafka, "SIGCONT the paused broker"),
        ("restart-rm", restart_rm, "SIGKILL the ResourceManager, start it again"),
        ("cut-node", cut_node, "cut places from all others (up --namespaces)"),
        ("cut-pair", cut_pair, "cut two places from each other (likewise)"),
        ("slow-node", slow_node, "delay what a place sends (likewise)"),
        ("heal", heal, "end cuts and delays (likewise)"),
    ):
        app.command(name, short_help=summary)(command)


def kill_node(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """SIGKILLs a NodeManager and everything it started."""
    killed = running(name).kill_node(node)
    say(f"{node}: killed {len(killed)} processes")


def kill_node_manager(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """SIGKILLs a NodeManager alone, not its containers."""
    pid = running(name).kill_node_manager(node)
    say(f"{node}: killed its NodeManager, process {pid}")


def start_node(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """Starts the NodeManager of a killed node again."""
    running(name).start_node(node, say)


def pause_node(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """SIGSTOPs a NodeManager and everything it started."""
    paused = running(name).pause_node(node)
    say(f"{node}: paused {len(paused)} processes")


def resume_node(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """SIGCONTs everything of a paused node, which believes that no time has passed."""
    woken = running(name).resume_node(node)
    say(f"{node}: resumed {len(woken)} processes")


def stop_kafka(
    *, name: Name = DEFAULT_NAME, broker: Broker = None, orderly: Orderly = False
) -> None:
    """SIGKILLs the broker; its data is left."""
    running(name).stop_kafka(broker, orderly=orderly)
    say(f"{_broker_words(broker)} is stopped; start-kafka starts it")


def start_kafka(*, name: Name = DEFAULT_NAME, broker: Broker = None) -> None:
    """Starts the broker again, on the same port, with its data."""
    running(name).start_kafka(say, broker=broker)


def pause_kafka(*, name: Name = DEFAULT_NAME, broker: Broker = None) -> None:
    """SIGSTOPs the broker."""
    running(name).pause_kafka(broker)
    say(f"{_broker_words(broker)} is paused; resume-kafka wakes it")


def resume_kafka(*, name: Name = DEFAULT_NAME, broker: Broker = None) -> None:
    """SIGCONTs the paused broker."""
    running(name).resume_kafka(broker)
    say(f"{_broker_words(broker)} goes on")


def restart_rm(*, name: Name = DEFAULT_NAME, orderly: Orderly = False) -> None:
    """SIGKILLs the ResourceManager and starts it again; applications and containers go on."""
    running(name).restart_resource_manager(say, orderly=orderly)


def cut_node(places: Places, *, name: Name = DEFAULT_NAME) -> None:
    """Cuts places from all others, silently, both ways (up --namespaces)."""
    running(name).faults.cut(*places)
    say(f"cut from all others: {', '.join(places)}; heal ends it")


def cut_pair(
    place: Place,
    other: Annotated[str, typer.Argument(metavar="PLACE", help="another one")],
    *,
    name: Name = DEFAULT_NAME,
) -> None:
    """Cuts two places from each other, silently, both ways (up --namespaces)."""
    running(name).faults.cut_pair(place, other)
    say(f"cut from each other: {place}, {other}; heal ends it")


def slow_node(
    place: Place,
    delay_ms: Annotated[int, typer.Argument(metavar="MS", help="In milliseconds; 0: none.")],
    *,
    name: Name = DEFAULT_NAME,
) -> None:
    """Holds each packet that a place sends back for a while (up --namespaces)."""
    running(name).faults.slow(place, delay_ms)
    say(f"packets of {place} are {delay_ms} ms late; heal ends it")


def heal(
    places: Annotated[
        list[str] | None, typer.Argument(metavar="[PLACE...]", help=f"{PLACES}; default: all")
    ] = None,
    *,
    name: Name = DEFAULT_NAME,
) -> None:
    """Ends cuts and delays of the places given, or of all (up --namespaces)."""
    running(name).faults.heal(*(places or ()))
    say(f"healed: {', '.join(places or ()) or 'the whole network'}")


def _broker_words(broker: int | None) -> str:
    return "Kafka" if broker is None else f"broker {broker}"
