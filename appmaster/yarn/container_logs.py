"""Reads log files of YARN containers from the web service of their NodeManager."""

import http.client
import re
import urllib.error
import urllib.parse

from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.direct import OPENER

_TIMEOUT_S = 10.0
_GUESS = 64 * 1024
"""The first request is for this many bytes at the end."""
_CONTENTS = b"LogContents:\n"
_LENGTH = re.compile(rb"^LogLength:(\d+)$", re.MULTILINE)
_ADVICE = "look at the file on the node, or use yarn logs once the application has ended"


class ContainerLog:
    """One file of one container. ``node``: the NodeManager's base URL.

    A node serves it while the application runs and for some time after that, also after the end of
    the container.
    """

    def __init__(self, node: str, container: str, name: str) -> None:
        folder = f"{node}/ws/v1/node/containers/{urllib.parse.quote(container)}/logs"
        self._url = f"{folder}/{urllib.parse.quote(name)}"
        self._container = container
        self._name = name

    def __str__(self) -> str:
        return f"{self._name} of {self._container}"

    def last(self, count: int) -> tuple[bytes, int]:
        """Return its last ``count`` bytes and its length; both empty: there is no file yet.

        UnavailableError: the node does not serve it.
        """
        answer = self._get(f"{self._url}?size={-max(1, count)}")
        if answer is None:
            return b"", 0
        found = content_of(answer, count)
        if found is None:
            raise self._fault("its answer is not that of a NodeManager of Hadoop 3")
        return found

    def after(self, position: int) -> tuple[bytes, int]:
        """Return its bytes from ``position`` on, and its length.

        UnavailableError: the node does not serve it.
        """
        data, length = self.last(_GUESS)
        if length - len(data) > position:
            # It may grow meanwhile: the second answer says where its part ends.
            data, longer = self.last(length - position + _GUESS)
            length = max(length, longer)
        return data[len(data) - (length - position) :] if length > position else b"", length

    def _get(self, url: str) -> bytes | None:
        try:
            with OPENER.open(url, timeout=_TIMEOUT_S) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                if refusal.code == http.client.NOT_FOUND:
                    return None
                raise self._fault(f"HTTP {refusal.code}") from None
        except (OSError, http.client.HTTPException) as fault:
            raise self._fault(str(fault)) from None

    def _fault(self, why: str) -> UnavailableError:
        return UnavailableError(f"{self} cannot be read from its NodeManager ({why}): {_ADVICE}")


def content_of(answer: bytes, count: int) -> tuple[bytes, int] | None:
    """Return the last ``count`` bytes of a file in a NodeManager's answer, and the file's length.

    The NodeManager writes lines about the file before these bytes, with the length, and lines after
    them. None: the answer has another form.
    """
    head, mark, rest = answer.partition(_CONTENTS)
    length = _LENGTH.search(head)
    if not mark or length is None:
        return None
    size = int(length[1])
    return rest[: min(count, size)], size
