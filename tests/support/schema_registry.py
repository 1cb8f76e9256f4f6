"""A small HTTP server with the part of the Schema Registry's API that its clients use.

No Schema Registry can be installed here: it is in no package registry that tests may ask. This one
is our own, runs in the test's process, and knows no compatibility rules. What speaks with it is
confluent-kafka's real client, over real HTTP.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

_TYPE = "application/vnd.schemaregistry.v1+json"


class SchemaRegistry:
    """Serves from its start to ``close``.

    ``user``: ``name:password`` that each request must have; None: anybody may ask. ``fails``: the
    status of every answer; None: they are right. ``requests``: (method, path) of each so far.
    """

    def __init__(self, user: str | None = None) -> None:
        self.user = user
        self.fails: int | None = None
        self.requests: list[tuple[str, str]] = []
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer("GET", {})

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                self._answer("POST", json.loads(self.rfile.read(length) or b"{}"))

            def _answer(self, method: str, body: dict[str, Any]) -> None:
                path = unquote(self.path.partition("?")[0])
                registry.requests.append((method, path))
                status, found = registry._found(
                    method, path, body, self.headers.get("Authorization")
                )
                data = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", _TYPE)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Nothing: a test has no access log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.05])
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """The server has ended."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> int:
        """The id of ``schema``, which the subject has from now on."""
        body = {"schema": schema, "schemaType": kind}
        if body not in self._schemas:
            self._schemas.append(body)
        number = self._schemas.index(body) + 1
        versions = self._subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def _found(
        self, method: str, path: str, body: dict[str, Any], authorization: str | None
    ) -> tuple[int, dict[str, Any]]:
        if self.fails is not None:
            return self.fails, {"error_code": self.fails * 100 + 1, "message": "out of order"}
        if self.user is not None:
            wanted = f"Basic {base64.b64encode(self.user.encode()).decode()}"
            if authorization != wanted:
                return 401, {"error_code": 401, "message": "Unauthorized"}
        by_id = re.fullmatch(r"/schemas/ids/(\d+)", path)
        if by_id:
            number = int(by_id[1])
            if 1 <= number <= len(self._schemas):
                return 200, self._schemas[number - 1]
            return 404, {"error_code": 40403, "message": "Schema not found"}
        subject = re.fullmatch(r"/subjects/(.+?)(/versions(?:/latest)?)?", path)
        number = self._of_subject(method, subject[1], subject[2], body) if subject else 0
        if subject and number:
            return 200, self._version(subject[1], number)
        return 404, {"error_code": 40401, "message": f"{path} not found."}

    def _of_subject(self, method: str, name: str, rest: str | None, body: dict[str, Any]) -> int:
        """The id of the answer; 0 where there is none."""
        versions = self._subjects.get(name, [])
        if (method, rest) == ("POST", "/versions"):
            return self.register(name, body["schema"], body.get("schemaType", "AVRO"))
        if (method, rest) == ("POST", None):
            return next(
                (n for n in versions if self._schemas[n - 1]["schema"] == body["schema"]), 0
            )
        return versions[-1] if rest == "/versions/latest" and versions else 0

    def _version(self, subject: str, number: int) -> dict[str, Any]:
        version = self._subjects[subject].index(number) + 1
        return {"subject": subject, "version": version, "id": number, **self._schemas[number - 1]}
