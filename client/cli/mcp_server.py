"""The command that lets an assistant use the service, by the Model Context Protocol: mcp."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from warpfold.client.cli.exits import Exit, fail
from warpfold.client.cli.session import service
from warpfold.kernels.machine.extras import install, installed

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from warpfold.client.api import Client
    from warpfold.client.models import Job

_LISTED = 100
"""A longer list is cut: an assistant would have to read all of it."""
_INSTRUCTIONS = """Warpfold reduces arrays and columns of files exactly: sums, means, variances, dot products,
quantiles, extremes, groups by key and more, with correctly rounded values. Look into a file of the service by
`inspect`, submit a job by `submit`, follow it by `status`, and read its value by `results`."""

JobId = Annotated[str, Field(description="The id of a job, as `submit` gives it.")]
WaitS = Annotated[float, Field(ge=0, le=300, description="How long to wait for the end of the job, in seconds.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(rich_help_panel="Server", epilog="Example: claude mcp add warpfold -- warpfold mcp")(mcp)


def mcp(context: typer.Context) -> None:
    """Serve the Model Context Protocol on standard input and output: an assistant can submit jobs and read results.

    The assistant does what your token may do. It takes the service that all commands take.
    """
    if not installed("mcp"):
        raise fail(f"`warpfold mcp` needs the protocol's library: {install('mcp')}", Exit.NOT_INSTALLED)
    with service(context) as client:
        server_of(client).run()


def server_of(client: "Client") -> "MCPServer":
    """A server whose tools ask the service of `client`. A tool runs in a thread of its own."""
    from importlib.metadata import version

    from mcp.server import MCPServer
    from mcp_types import ToolAnnotations

    server = MCPServer("warpfold", instructions=_INSTRUCTIONS, version=version("warpfold"), log_level="WARNING")
    reading = ToolAnnotations(read_only_hint=True)

    @server.tool()
    def submit(
        spec: Annotated[dict[str, Any], Field(description="The spec, as the body of `POST /v1/jobs`.")],
        wait_s: WaitS = 30.0,
    ) -> dict[str, Any]:
        """Submit a job, and wait for its end for a while. A sum of numbers, and a mean by key of a file of the service:

        {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1e16, 1, -1e16]}}
        {"kind": "groupby", "source": {"type": "table", "path": "sales.csv"}, "by": ["region"],
        "aggregations": [{"op": "mean", "column": "price"}]}

        `op` is one of sum, mean, var, std, min, max, median, quantile, dot, norm2 and others. The refusal of a wrong
        spec names the field and what it may be.
        """
        with _in_words():
            return _in_brief(_ended(client, client.submit(spec), wait_s))

    @server.tool(annotations=reading)
    def status(job_id: JobId) -> dict[str, Any]:
        """The status of a job, its progress, its place in the queue, and why it waits or failed."""
        with _in_words():
            return _in_brief(client.job(job_id))

    @server.tool(annotations=reading)
    def results(job_id: JobId, wait_s: WaitS = 0.0) -> dict[str, Any]:
        """The result of a job with its value and its provenance, once it has ended."""
        with _in_words():
            job = _ended(client, client.job(job_id), wait_s)
            if job.status != "succeeded":
                return _in_brief(job)
            return {**_in_brief(job), "result": _cut(client.result(job).model_dump(mode="json"))}

    @server.tool(annotations=reading)
    def inspect(
        source: Annotated[
            str | dict[str, Any],
            Field(description="A path below the folders of the service, or a source as a spec has it."),
        ],
    ) -> dict[str, Any]:
        """Look into a file that the service may read: its arrays or columns, with dtypes, shapes and nulls."""
        with _in_words():
            contents: dict[str, Any] = _cut(client.inspect(source).model_dump(mode="json"))
            return contents

    return server


@contextmanager
def _in_words() -> Iterator[None]:
    """Tell the assistant of an error in the words of the service: the library would withhold them."""
    from mcp.server.mcpserver.exceptions import ToolError

    from warpfold.client.errors import WarpfoldError

    try:
        yield
    except WarpfoldError as error:
        raise ToolError(str(error)) from error


def _ended(client: "Client", job: "Job", wait_s: float) -> "Job":
    """The job at its end, if that comes within `wait_s` seconds, or else as it is then."""
    from warpfold.client.errors import WaitedTooLong

    if wait_s and not job.ended:
        try:
            return client.wait(job, timeout_s=wait_s)
        except WaitedTooLong:
            return client.job(job.id)
    return job


def _in_brief(job: "Job") -> dict[str, Any]:
    """What an assistant needs of a job. A value is there if there is a single one."""
    names = ("id", "kind", "status", "error", "reason", "progress", "queue_position", "estimated_start_at", "waiting")
    fields: dict[str, Any] = job.model_dump(mode="json", include={*names})
    brief = {name: value for name, value in fields.items() if value is not None}
    value = getattr(job.result, "value", None)
    return brief if value is None else {**brief, "value": value}


def _cut(node: Any) -> Any:
    """The JSON value with the beginnings of long lists, each with the number of what is left out."""
    if isinstance(node, dict):
        return {name: _cut(value) for name, value in node.items()}
    if not isinstance(node, list):
        return node
    rest = len(node) - _LISTED
    return [_cut(value) for value in node[:_LISTED]] + ([f"… and {rest} more"] if rest > 0 else [])
