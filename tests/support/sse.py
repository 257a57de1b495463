"""A reader of server-sent events for tests, written from the HTML standard (9.2.6)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Sent:
    """One event."""

    id: int
    event: str
    data: Any


def events(response: httpx.Response) -> Iterator[Sent]:
    """The events of a streaming answer, as they come."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if not line and fields:
            yield Sent(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}
        elif line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
