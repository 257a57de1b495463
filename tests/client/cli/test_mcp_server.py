"""An assistant, here the client of the protocol's own library, submits jobs and reads results over standard input and
output."""

import asyncio
import re
import sys
from json import loads
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

from tests.support.service import Service
from tests.support.shell import Shell
from warpfold.client.cli.mcp_server import _cut

SUM: dict[str, Any] = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1e16, 1, -1e16]}}


async def _call(assistant: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await assistant.call_tool(tool, arguments)
    assert isinstance(answer, CallToolResult)
    assert not answer.is_error, answer
    assert isinstance(answer.structured_content, dict)
    return answer.structured_content


async def _refusal(assistant: Client, tool: str, **arguments: Any) -> str:
    answer = await assistant.call_tool(tool, arguments)
    assert isinstance(answer, CallToolResult)
    assert answer.is_error
    return str(answer.content)


def test_an_assistant_submits_a_job_and_reads_its_status_and_result(shell: Shell, service: Service) -> None:
    [root] = service.settings.data_roots
    (root / "sales.csv").write_text("region,price\nEU,1\nEU,2\nUS,4\n")
    server = StdioServerParameters(command=sys.executable, args=["-m", "warpfold", "mcp"], env=shell.environment)

    async def converse() -> None:
        async with Client(server, read_timeout_seconds=60) as assistant:
            listed = await assistant.list_tools()
            assert {tool.name for tool in listed.tools} == {"submit", "status", "results", "inspect"}
            [described] = [str(tool.description) for tool in listed.tools if tool.name == "submit"]
            by_key, of_values = sorted(
                map(loads, re.findall(r"^ *(\{.*?\})$", described, re.DOTALL | re.MULTILINE)), key=len
            )[::-1]
            assert of_values == SUM
            assert (await _call(assistant, "submit", spec=by_key))["status"] == "succeeded"
            ended = await _call(assistant, "submit", spec=SUM)
            assert (ended["status"], ended["value"]) == ("succeeded", 1.0)
            assert (await _call(assistant, "status", job_id=ended["id"]))["status"] == "succeeded"
            whole = await _call(assistant, "results", job_id=ended["id"])
            assert whole["result"]["correctly_rounded"] is True
            source = {"type": "table", "path": "sales.csv"}
            looked = await _call(assistant, "inspect", source=source)
            assert [column["name"] for column in looked["contents"]] == ["region", "price"]
            assert "source.dtype: unknown dtype 'float3'" in await _refusal(
                assistant, "submit", spec={**SUM, "source": {**SUM["source"], "dtype": "float3"}}
            )
            assert "neither an id nor its beginning" in await _refusal(assistant, "status", job_id="0" * 32)

    asyncio.run(converse())


def test_long_lists_are_cut_with_the_number_of_what_is_left_out() -> None:
    assert _cut({"values": list(range(103)), "few": [1]}) == {"values": [*range(100), "… and 3 more"], "few": [1]}


def test_without_the_library_the_command_says_what_to_install(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpfold.client.cli.mcp_server.installed", lambda _: False)
    done = shell.run("mcp")
    assert done.code == 6
    assert "pip install '.[mcp]'" in done.err
