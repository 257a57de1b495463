"""The same submission in curl and in Python."""

import json
import pprint
import shlex
from collections.abc import Mapping
from typing import Any


def curl_of(address: str, spec: Mapping[str, Any]) -> str:
    """A command for a shell that has the token in WARPFOLD_TOKEN."""
    body = shlex.quote(json.dumps(spec, ensure_ascii=False))
    return (
        f"curl -s {address}/v1/jobs \\\n"
        '  -H "Authorization: Bearer $WARPFOLD_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' -H 'Prefer: wait=30' \\\n"
        f"  -d {body}"
    )


def python_of(address: str, spec: Mapping[str, Any]) -> str:
    """A program on the project's own client, which takes the token from WARPFOLD_TOKEN."""
    shown = pprint.pformat(dict(spec), width=76, sort_dicts=False, compact=True)
    return (
        "from warpfold import Client\n\n"
        f"spec = {shown.replace(chr(10), chr(10) + '       ')}\n\n"
        f'with Client("{address}") as warpfold:\n'
        "    print(warpfold.submit(spec).get())"
    )
