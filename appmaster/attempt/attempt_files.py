"""Files in the AM's folder from one driver to the next of the same attempt.

They live as long as the AM's container, and so as Skein's containers: a new attempt starts without
them, as it must.
"""

from pathlib import Path

from homeport.appmaster.attempt.inherited import Inheritance
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.json_values import compact_json, parse_object

_STARTED_NAME = "started.jsonl"
_INHERITANCE_NAME = "inheritance.json"


class StartedLedger:
    """The file of stream containers' reports of their start: one line each, appended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / _STARTED_NAME
        self._known = {known.incarnation for known in self.read()}

    def read(self) -> tuple[Started, ...]:
        """Return all reports in order, without a last line that is not whole."""
        try:
            lines = self._path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return ()
        return tuple(Started.from_json(parse_object(line, "a start")) for line in lines)

    def add(self, message: Started) -> None:
        """Append the report, for the next driver; a repeated report adds nothing."""
        if message.incarnation in self._known:
            return
        self._known.add(message.incarnation)
        with self._path.open("ab") as file:
            file.write(compact_json(message.to_json()) + b"\n")


def inheritance(folder: Path, found: Inheritance) -> Inheritance:
    """Return the inheritance that the first driver of the attempt found; its own is ``found``.

    Call it after the own rank is read back, and before the first permit.
    """
    path = folder / _INHERITANCE_NAME
    try:
        body = parse_object(path.read_bytes(), "the inheritance")
    except OSError:
        body = {
            "since_ms": found.since_ms,
            "permitted": [[i.processor_id, i.epoch, ms] for i, ms in found.permitted.items()],
        }
        new = path.with_suffix(".new")
        new.write_bytes(compact_json(body))
        new.replace(path)
        return found
    permitted = {Incarnation(ProcessorId(p), int(e)): int(ms) for p, e, ms in body["permitted"]}
    return Inheritance(int(body["since_ms"]), permitted)
