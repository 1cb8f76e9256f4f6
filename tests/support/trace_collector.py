"""A receiver of traces by OpenTelemetry's protocol over HTTP, on a port of its own."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span


class TraceCollector:
    """What came so far."""

    def __init__(self) -> None:
        self.received: list[ResourceSpans] = []
        self.url = ""

    def spans(self) -> list[Span]:
        """Every span, in the order of their arrival."""
        return [s for r in self.received for scope in r.scope_spans for s in scope.spans]

    def resource(self) -> dict[str, str]:
        """What the first sender says of itself."""
        found = self.received[0].resource.attributes
        return {a.key: a.value.string_value or str(a.value.int_value) for a in found}


@contextmanager
def trace_collector() -> Iterator[TraceCollector]:
    """It answers at ``url`` within the block."""
    collector = TraceCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.received.extend(ExportTraceServiceRequest.FromString(body).resource_spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
