"""Requests that no program of ours sends, as bytes: methods, paths, headers, bodies, sizes."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from odd_bodies import ODD

_METHODS = (
    *(
        "GET",
        "HEAD",
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "get",
        "GET ",
    ),
    *("PROPFIND", "", "G\x00T", "\xff\xfe", "X" * 300),
)
PATHS = (
    *("/", "/config", "/locality", "/containerHeartbeat", "/metrics", "/health", "/v1/processor"),
    *("/v1/status", "/v1/events", "/v1/what-if", "/v1/audit", "/v1/processors/0/model"),
    *("/v1/check-in", "/v1/started", "/v1/stopped", "/v1/unfit", "/ui", "/ui/", "/ui/state"),
    *("/ui/plots", "/ui/configuration", "/ui/main.js", "/ui/actions", "/ui/actions/move"),
    *("/ui/actions/config", "/ui/actions/restart", "/ui/actions/none", "/ui/answers/1"),
    "/ui/answers/00000000-0000-0000-0000-000000000000",
)
"""The routes; without that which ends the job."""
_ODD_PATHS = (
    *("//", "/../../etc/passwd", "/ui/../../x", "/ui/%2e%2e%2fserver.py", "/%00", "/ui/main.js%00"),
    *(
        "*",
        "http://other.example/",
        "/ui/\\..\\x",
        "/;a=b",
        "/%",
        "/%zz",
        "/\u00e4",
        "/" + "a" * 9_000,
    ),
    *("/v1/processors/%2F/model", "/v1/processors/" + "%25" * 200 + "/model", "?", "#", "/ui/a.b"),
)
_NAMES = ("version", "since", "limit", "processor", "host", "processorId", "executionContainerId")
_TYPES = (
    "application/json",
    "text/plain",
    "multipart/form-data; boundary=x",
    "",
    "a/b; charset=\xff",
)
_NUMBERS = ("0", "-1", "1", "999999999999999999999", "0x10", "1e3", "", " 5", "5, 5", "+3")


@dataclass(frozen=True)
class BadRequest:
    """``data``: all bytes of it. ``is_job``: it shows the job's own token."""

    data: bytes
    is_job: bool


class BadRequests:
    """The same requests for the same seed.

    Args:
        tokens: right ones, which some of the requests show; the first is the job's own.
    """

    def __init__(self, seed: int, tokens: Sequence[str]) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secret comes of it
        self._tokens = tokens

    def some(self, count: int) -> Iterator[BadRequest]:
        """So many."""
        for _ in range(count):
            kind = self._random.random()
            if kind < 0.05:
                yield BadRequest(
                    self._random.randbytes(self._random.randrange(1, 300)), is_job=False
                )
            else:
                yield self._request()

    def _request(self) -> BadRequest:
        pick = self._random
        method = pick.choice(_METHODS) if pick.random() < 0.15 else pick.choice(("GET", "POST"))
        version = pick.choice(("HTTP/1.1",) * 60 + ("HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "junk"))
        body = self._body() if method != "GET" or pick.random() < 0.1 else b""
        headers, is_job = self._headers(body)
        head = f"{method} {self._path()} {version}\r\n" + "".join(f"{h}\r\n" for h in headers)
        data = head.encode("latin-1", "replace") + b"\r\n" + body
        if pick.random() < 0.05:
            data = data[: pick.randrange(1, len(data) + 1)]
        if pick.random() < 0.05:
            at = pick.randrange(len(data))
            data = data[:at] + pick.randbytes(1) + data[at + 1 :]
        return BadRequest(data, is_job)

    def _path(self) -> str:
        pick = self._random
        path = pick.choice(PATHS) if pick.random() < 0.8 else pick.choice(_ODD_PATHS)
        for mark in "?&&"[: pick.randrange(4)]:
            path += f"{mark}{pick.choice(_NAMES)}={self._value()}"
        return path

    def _value(self) -> str:
        pick = self._random
        if pick.random() < 0.5:
            return pick.choice(_NUMBERS).replace(" ", "%20")
        return "".join(f"%{pick.randrange(256):02x}" for _ in range(pick.randrange(12)))

    def _headers(self, body: bytes) -> tuple[list[str], bool]:
        pick, is_job = self._random, False
        found = ["Host: 127.0.0.1"] if pick.random() < 0.98 else []
        if pick.random() < 0.5:
            token = pick.choice(self._tokens)
            is_job = token == self._tokens[0]
            found.append(f"Authorization: Bearer {token}" + pick.choice(("",) * 30 + ("\x01",)))
        elif pick.random() < 0.3:
            odd = pick.choice(
                ("Bearer", "Bearer \xe4", "Basic eDp5", "Bearer a b", "\x00", "x" * 9_000)
            )
            found.append(f"Authorization: {odd}")
        length = str(len(body)) if pick.random() < 0.93 else pick.choice(_NUMBERS)
        if body or pick.random() < 0.2:
            found.append(
                pick.choice((f"Content-Length: {length}",) * 9 + ("Transfer-Encoding: chunked",))
            )
        found.append(f"Content-Type: {pick.choice(_TYPES[:1] * 5 + _TYPES)}")
        for odd in (
            *("Content-Encoding: gzip", "Content-Encoding: deflate", "Content-Encoding: br, x"),
            *(
                "Accept-Encoding: gzip;q=\xb2",
                'If-None-Match: "',
                "If-None-Match: *",
                "Range: bytes=5-",
            ),
            *(
                "Expect: 100-continue",
                "Expect: 100-continu\xcc",
                "Upgrade: websocket",
                "Origin: null",
                "Origin: \xff",
                "X: " + "y" * 9_000,
            ),
            *(
                "Sec-Fetch-Site: cross-site",
                "Cookie: a=b; c",
                "no colon",
                ": x",
                "Host: a\tb",
                " folded",
            ),
        ):
            found += [odd] * (pick.random() < 0.015)
        found.append("Connection: close")
        return found, is_job

    def _body(self) -> bytes:
        pick = self._random
        fields = {
            name: pick.choice(ODD[:24])
            for name in ("dry_run", "processor", "host", "key", "value", "epoch", "pid", "report")
            if pick.random() < 0.5
        }
        # A dry run or none: what is carried out is for other tests.
        fields["dry_run"] = "true" if pick.random() < 0.8 else pick.choice(('"no"', "1", "null"))
        right = (
            "{" + ",".join(f"{json.dumps(n)}:{text[:2_000]}" for n, text in fields.items()) + "}"
        )
        made = (
            right.encode(),
            pick.choice(ODD).encode()[:20_000],
            pick.randbytes(pick.randrange(200)),
            gzip.compress(right.encode()),
            zlib.compress(bytes(3_000_000)) if pick.random() < 0.05 else b"{}",
            b"[" * 100_000 if pick.random() < 0.1 else b"",
            bytes(1_100_000) if pick.random() < 0.3 else b"\xef\xbb\xbf{}",
            b'5\r\n{"a":\r\nzz\r\n',
        )
        return pick.choice(made[:1] * 6 + made)
