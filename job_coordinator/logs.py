"""How a process of a job logs: one line per message, as text or as JSON (``job.log.format``).

A process logs before it has a configuration, so that its environment says how; the level follows
the configuration later (``set_level``).
"""

import io
import json
import logging
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

from homeport.config.settings.log_section import FORMAT_VARIABLE, LEVEL_VARIABLE

TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LEAST_OF_OTHERS: Final = {"py4j": logging.WARNING, "kazoo": logging.ERROR}
"""Below these levels the libraries log nothing about a job, or the same each second."""
_facts: dict[str, object] = {}


class JsonFormatter(logging.Formatter):
    """One object for each message.

    Fields: ``time`` (UTC, ISO 8601, ms), ``level``, ``logger``, ``message``, ``host``; of a process
    that is one incarnation ``processor`` and ``epoch``; ``exception`` with its traceback; and what
    the message brings along in ``extra={"facts": {...}}``.
    """

    def __init__(self) -> None:
        super().__init__()
        self._host = socket.gethostname()

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line break in it."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found: dict[str, object] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "host": self._host,
            **_facts,
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=False, default=str)


def begin(stream: TextIO, environment: Mapping[str, str]) -> None:
    """Log to ``stream``, as the process's environment has it; INFO and text by default.

    What its streams cannot encode, such as half a surrogate pair, they write as an escape.
    """
    for written in {stream, sys.stdout, sys.stderr}:
        if isinstance(written, io.TextIOWrapper):
            written.reconfigure(errors="backslashreplace")
    handler = logging.StreamHandler(stream)
    is_json = environment.get(FORMAT_VARIABLE) == "json"
    handler.setFormatter(JsonFormatter() if is_json else logging.Formatter(TEXT))
    logging.basicConfig(handlers=[handler])
    set_level(environment.get(LEVEL_VARIABLE) or "INFO")


def set_level(level: str) -> None:
    """Log messages of this level and above from now on; ``level``: a name of Python's."""
    number = logging.getLevelNamesMapping()[level]
    logging.getLogger().setLevel(number)
    for name, least in _LEAST_OF_OTHERS.items():
        logging.getLogger(name).setLevel(max(number, least))


def add_facts(**facts: object) -> None:
    """Add these fields to each JSON line of this process from now on."""
    _facts.update(facts)
