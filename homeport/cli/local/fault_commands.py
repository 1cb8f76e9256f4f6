"""``homeport local kill-node`` and the like: what can happen to a cluster, on request."""

from typing import Annotated

import typer

from homeport.cli.local.common import DEFAULT_NAME, Name, running, show
from homeport.cli.options import described, new_app

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

app = new_app()


@app.command(short_help="SIGKILL a NodeManager and all that it started")
def kill_node(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """SIGKILLs a NodeManager and everything it started."""
    killed = running(name).kill_node(node)
    show(f"{node}: killed {len(killed)} processes")


@app.command(short_help="SIGKILL a NodeManager, not its containers")
def kill_node_manager(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """SIGKILLs a NodeManager alone, not its containers."""
    pid = running(name).kill_node_manager(node)
    show(f"{node}: killed its NodeManager, process {pid}")


@app.command(short_help="start the NodeManager of a killed node again")
def start_node(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """Starts the NodeManager of a killed node again."""
    running(name).start_node(node, show)


@app.command(short_help="start one NodeManager more, under a new name")
def add_node(*, name: Name = DEFAULT_NAME) -> None:
    """Starts one NodeManager more, under the next name."""
    running(name).add_node(show)


@app.command(short_help="SIGSTOP a NodeManager and all that it started")
def pause_node(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """SIGSTOPs a NodeManager and everything it started."""
    paused = running(name).pause_node(node)
    show(f"{node}: paused {len(paused)} processes")


@app.command(short_help="SIGCONT all of a paused node")
def resume_node(node: Node, *, name: Name = DEFAULT_NAME) -> None:
    """SIGCONTs everything of a paused node, which believes that no time has passed."""
    woken = running(name).resume_node(node)
    show(f"{node}: resumed {len(woken)} processes")


@app.command(short_help="SIGKILL the broker; its data is left")
def stop_kafka(
    *, name: Name = DEFAULT_NAME, broker: Broker = None, orderly: Orderly = False
) -> None:
    """SIGKILLs the broker; its data is left."""
    running(name).stop_kafka(broker, orderly=orderly)
    show(f"{_broker_words(broker)} is stopped; start-kafka starts it")


@app.command(short_help="start the broker again, with its data")
def start_kafka(*, name: Name = DEFAULT_NAME, broker: Broker = None) -> None:
    """Starts the broker again, on the same port, with its data."""
    running(name).start_kafka(show, broker=broker)


@app.command(short_help="SIGSTOP the broker")
def pause_kafka(*, name: Name = DEFAULT_NAME, broker: Broker = None) -> None:
    """SIGSTOPs the broker."""
    running(name).pause_kafka(broker)
    show(f"{_broker_words(broker)} is paused; resume-kafka wakes it")


@app.command(short_help="SIGCONT the paused broker")
def resume_kafka(*, name: Name = DEFAULT_NAME, broker: Broker = None) -> None:
    """SIGCONTs the paused broker."""
    running(name).resume_kafka(broker)
    show(f"{_broker_words(broker)} goes on")


@app.command(short_help="SIGKILL the ResourceManager, start it again")
def restart_rm(*, name: Name = DEFAULT_NAME, orderly: Orderly = False) -> None:
    """SIGKILLs the ResourceManager and starts it again; applications and containers go on."""
    running(name).restart_resource_manager(show, orderly=orderly)


@app.command(short_help="cut places from all others (up --namespaces)")
def cut_node(places: Places, *, name: Name = DEFAULT_NAME) -> None:
    """Cuts places from all others, silently, both ways (up --namespaces)."""
    running(name).faults.cut(*places)
    show(f"cut from all others: {', '.join(places)}; heal ends it")


@app.command(short_help="cut two places from each other (likewise)")
@described(other=typer.Argument(metavar="PLACE", help="another one"))
def cut_pair(place: Place, other: str, *, name: Name = DEFAULT_NAME) -> None:
    """Cuts two places from each other, silently, both ways (up --namespaces)."""
    running(name).faults.cut_pair(place, other)
    show(f"cut from each other: {place}, {other}; heal ends it")


@app.command(short_help="delay what a place sends (likewise)")
@described(delay_ms=typer.Argument(metavar="MS", help="In milliseconds; 0: none."))
def slow_node(place: Place, delay_ms: int, *, name: Name = DEFAULT_NAME) -> None:
    """Holds each packet that a place sends back for a while (up --namespaces)."""
    running(name).faults.slow(place, delay_ms)
    show(f"packets of {place} are {delay_ms} ms late; heal ends it")


@app.command(short_help="end cuts and delays (likewise)")
@described(places=typer.Argument(metavar="[PLACE...]", help=f"{PLACES}; default: all"))
def heal(places: list[str] | None = None, *, name: Name = DEFAULT_NAME) -> None:
    """Ends cuts and delays of the places given, or of all (up --namespaces)."""
    running(name).faults.heal(*(places or ()))
    show(f"healed: {', '.join(places or ()) or 'the whole network'}")


def _broker_words(broker: int | None) -> str:
    return "Kafka" if broker is None else f"broker {broker}"
