"""The flights job as one Python file: what each plane did in 2013, summed flight by flight.

Give the brokers by HOMEPORT_BOOTSTRAP_SERVERS. What the job sends has the names of plane, airport
and airline too.
"""

import logging
from dataclasses import asdict, dataclass

from homeport import IncomingMessage, Job

LOG = logging.getLogger("flights")


@dataclass
class Flight:
    """What a summary needs of the nineteen fields of a flight."""

    tailnum: str | None
    carrier: str
    dep_time: int | None
    dep_delay: int | None
    distance: int
    dest: str


@dataclass
class Summary:
    """What one plane did."""

    flights: int = 0
    cancelled: int = 0
    dep_delay_min: int = 0
    miles: int = 0
    last_airport: str | None = None
    carrier: str | None = None


@dataclass
class Plane:
    """What the job keeps of the nine fields of a plane."""

    manufacturer: str | None = None
    model: str | None = None


@dataclass
class Airport:
    """What the job keeps of the eight fields of an airport."""

    name: str


job = Job("flights", containers=3)
flights = job.input("flights", key=str, value=Flight)
changed = job.output("plane-summary", key=str, value=dict)
summaries = job.store("summaries", key=str, value=Summary)
skipped = job.store("skipped", key=str, value=int)
# Reference data, which its topics keep: planes are partitioned as flights are, of the others each
# container has all; airlines come in versions.
planes = job.reference("planes", key=str, value=Plane)
airports = job.reference("airports", key=str, value=Airport, broadcast=1)
airlines = job.reference("airlines", key=str, value=str, broadcast=1, versions="version")


@job.each(flights)
def add(tail_number: str | None, flight: Flight, message: IncomingMessage) -> None:
    """Add one flight to the summary of its plane; skip and count it where it names no plane."""
    if tail_number is None:
        LOG.info("flight skipped: partition %d offset %d", message.partition, message.offset)
        partition = f"partition-{message.partition}"
        skipped[partition] = skipped.get(partition, 0) + 1
        return
    summary = summaries.get(tail_number) or Summary()
    summary.flights += 1
    summary.dep_delay_min += flight.dep_delay or 0
    if flight.dep_time is None:
        summary.cancelled += 1
    else:
        summary.miles += flight.distance
        summary.last_airport = flight.dest
    summary.carrier = flight.carrier
    summaries[tail_number] = summary
    names = {"tailnum": tail_number, "airline": airlines.get(flight.carrier)}
    names["last_airport_name"] = _airport_name(summary.last_airport)
    plane = planes.get(tail_number) or Plane()
    sent = {**names, **asdict(summary), **asdict(plane), "batch": message.offset}
    changed.send(tail_number, sent)


def _airport_name(code: str | None) -> str | None:
    airport = None if code is None else airports.get(code)
    return None if airport is None else airport.name
