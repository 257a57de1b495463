"""A collector of OpenTelemetry's traces: takes what real exporters send by OTLP over HTTP, and keeps the spans."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Seen:
    """A span as it arrived; ids in hexadecimal, times in seconds."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    start: float
    end: float
    attributes: Mapping[str, Any]


@dataclass
class Collector:
    url: str
    spans: list[Seen] = field(default_factory=list)

    def of(self, trace: str) -> list[Seen]:
        """The spans of a trace, by their start."""
        return sorted((span for span in self.spans if span.trace == trace), key=lambda span: span.start)


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector on a free port, until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            collected.spans.extend(_spans(ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collected = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield collected
        finally:
            server.shutdown()
            thread.join()


def _spans(request: ExportTraceServiceRequest) -> Iterator[Seen]:
    for resource in request.resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Seen(
                    service,
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano / 1e9,
                    span.end_time_unix_nano / 1e9,
                    _attributes(span.attributes),
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
