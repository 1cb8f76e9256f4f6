"""The answers of a NodeManager, as its web service gives them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from homeport.appmaster.yarn.container_logs import ContainerLog, content_of
from homeport.config.errors import UnavailableError

HEAD = "Container: c_1 on nm1:8041\nLogAggregationType: LOCAL\n====\nLogType:a.log\n"
TAIL = b"\nEnd of LogType:a.log.This log file belongs to a running container.\n****\n"


def answer(content: bytes, count: int) -> bytes:
    """To a question for the last ``count`` bytes of a file with this content."""
    head = f"{HEAD}LogLength:{len(content)}\nLogContents:\n".encode()
    return head + content[-count:] + TAIL


class _Node(BaseHTTPRequestHandler):
    content = b""
    growth = b""
    status = 200
    is_odd = False

    def do_GET(self) -> None:
        node = type(self)
        count = -int(parse_qs(urlsplit(self.path).query)["size"][0])
        self.send_response(node.status)
        self.end_headers()
        self.wfile.write(b"a page" if node.is_odd else answer(node.content, count))
        node.content += node.growth

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture
def node() -> Iterator[tuple[type[_Node], ContainerLog]]:
    """A web service that answers so, and a log there."""
    kind = type("_Own", (_Node,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield kind, ContainerLog(f"http://127.0.0.1:{server.server_address[1]}", "c_1", "a.log")
        server.shutdown()


def test_what_a_node_says_of_a_file_is_no_part_of_it() -> None:
    """The length is that of the whole file."""
    assert content_of(answer(b"one\ntwo\n", 4), 4) == (b"two\n", 8)
    assert content_of(answer(b"", 5), 5) == (b"", 0)
    assert content_of(answer(b"LogContents:\nx", 99), 99) == (b"LogContents:\nx", 14)
    assert content_of(b"<html>", 5) is None


def test_a_log_is_read_from_a_position_on_though_it_grows(
    node: tuple[type[_Node], ContainerLog],
) -> None:
    """Nothing is read twice, and nothing left out, whatever the length of what is new."""
    kind, log = node
    kind.content, kind.growth = b"x" * 200_000, b"yz"
    first, position = log.after(0)
    assert first == b"x" * 200_000 + b"yz"
    second, position = log.after(position)
    assert (second, position) == (b"yz", 200_004)
    kind.growth = b""
    assert log.after(200_006) == (b"", 200_006)
    assert log.last(3) == (b"zyz", 200_006)


def test_a_file_that_is_not_there_yet_is_empty(node: tuple[type[_Node], ContainerLog]) -> None:
    """A container makes it when it begins."""
    kind, log = node
    kind.status = 404
    assert log.after(0) == (b"", 0)


def test_a_node_that_does_not_serve_it(node: tuple[type[_Node], ContainerLog]) -> None:
    """One line names the file, the reason and what to do; so for an answer of another form."""
    kind, log = node
    kind.status = 401
    with pytest.raises(UnavailableError, match=r"a\.log of c_1 .*HTTP 401.*yarn logs"):
        log.last(1)
    kind.status, kind.is_odd = 200, True
    with pytest.raises(UnavailableError, match="Hadoop 3"):
        log.last(1)
    with pytest.raises(UnavailableError, match="cannot be read"):
        ContainerLog("http://127.0.0.1:1", "c_1", "a.log").last(1)
