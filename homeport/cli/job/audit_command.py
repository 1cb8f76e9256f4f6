"""``homeport audit``: each change of a running job: operator, address, before and after.

The driver that runs has its own changes in memory. Those of earlier ones are in the history, on the
hosts where the ApplicationMaster ran (``--history``).
"""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from homeport.cli.job.job_view import require_running
from homeport.cli.options import AsJson, Given, described, indented_json, new_app, note_origin
from homeport.config.errors import ConfigError
from homeport.job_coordinator.http.audit import UNKNOWN, AuditedChange, Change

app = new_app()

_EVENT = "audit"


@app.command()
@described(history="Read this folder of a history instead, which outlives the job.")
def audit(*, given: Given, history: Path | None = None, as_json: AsJson = False) -> None:
    """Prints the changes of the job, the oldest first: by HTTP, and by tools.

    The running job answers, with the changes since its driver began, at most the last 1,000.
    Secrets are masked. Where the record of a change does not name its writer, it says unknown.
    """
    if history is None:
        running = require_running(given, "audit")
        answer = running.client.audit()
        note_origin(f"{running}, since {_clock(int(answer['since_ms']))}")
        changes = list(answer["changes"])
    else:
        changes = changes_in(history)
        note_origin(history)
    if as_json:
        print(indented_json(changes))
        return
    for change in changes:
        print(line(change))


def changes_in(folder: Path) -> list[dict[str, Any]]:
    """Return those that the files of a history have, by time; whole lines alone."""
    found = list[dict[str, Any]]()
    try:
        for path in folder.iterdir():
            if path.suffix != ".jsonl":
                continue
            for text in path.read_text(encoding="utf-8", errors="replace").split("\n"):
                if f'"{_EVENT}"' in text:
                    found += _changes_of(text)
    except (FileNotFoundError, NotADirectoryError):
        rule, remedy = "it is no folder", "give job.history.dir"
        raise ConfigError("--history", str(folder), rule, remedy) from None
    except OSError as error:
        rule = f"{error.filename} cannot be read: {error.strerror}"
        remedy = "run this as the job's user, or let a group read job.history.dir (mode 2750)"
        raise ConfigError("--history", str(folder), rule, remedy) from None
    return sorted(found, key=lambda change: change["at_ms"])


def _changes_of(text: str) -> Iterator[dict[str, Any]]:
    try:
        event = json.loads(text)
        if event["event"] != _EVENT:
            return
        fields = {name: event.get(name) for name in Change.__slots__}
        yield to_builtins(AuditedChange(at_ms=int(event["ts_ms"]), **fields))
    except (ValueError, KeyError, TypeError):
        return  # the last line of a process that was killed, or of a full disk


def line(change: Mapping[str, Any]) -> str:
    """Return one change, with its time."""
    texts = {n: change.get(n) for n in ("author", "address", "through", "what")}
    named = {n: UNKNOWN if t is None else str(t) for n, t in texts.items()}
    full = Change(**named, before=change.get("before"), after=change.get("after")).bounded()
    return f"{_clock(int(change['at_ms']))}  {full}"


def _clock(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ms / 1000)) + " UTC"
