"""SystemStream: one stream of one system, and the text form under which configuration names it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOPIC = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """Return whether Kafka takes ``text`` as the name of a topic."""
    return _TOPIC.fullmatch(text) is not None


@dataclass(frozen=True, order=True, slots=True)
class SystemStream:
    """One stream (a Kafka topic) of one system (a Kafka cluster)."""

    system: str
    stream: str

    def __str__(self) -> str:
        return f"{self.system}.{self.stream}"

    @staticmethod
    def parse(text: str) -> SystemStream | None:
        """Return the stream that ``system.stream`` names; None where the text is not of that form.

        The first dot separates: stream names may contain dots, system names may not.
        """
        system, dot, stream = text.strip().partition(".")
        return SystemStream(system, stream) if system and dot and stream else None
