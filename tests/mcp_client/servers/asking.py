"""A server on the official SDK that asks its user. ``asking.py [http]``: over HTTP it prints its port first."""

import asyncio
import socket
import sys
from typing import Annotated, Literal

import anyio
import uvicorn
from mcp import MCPError
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    ElicitRequest,
    ElicitRequestURLParams,
    InputRequiredResult,
)
from pydantic import BaseModel

app = MCPServer("asking")
is_asked = anyio.Event()


class Delivery(BaseModel):
    street: str
    count: int = 1
    speed: Literal["slow", "fast"] = "slow"


async def ask_delivery() -> Elicit[Delivery]:
    return Elicit("Where to?", Delivery)


@app.tool()
async def order(to: Annotated[ElicitationResult[Delivery], Resolve(ask_delivery)]) -> str:
    """Order something; asks where to."""
    return f"{to.action} {to.data.model_dump_json() if to.action == 'accept' else ''}".strip()


@app.tool()
async def deliver(ctx: Context, refuses: bool = False) -> str:
    """Ask where to in the middle of the call; if it cannot, fail or refuse the call."""
    try:
        return (await ctx.elicit("Where to?", Delivery)).action
    except MCPError as error:
        raise error if refuses else ToolError(str(error)) from error


@app.tool()
async def visit(ctx: Context, url: str) -> str:
    """Have a page opened, in the middle of the call."""
    await ctx.report_progress(42, 100, "Sorting")
    await ctx.info("opened the <b>orders</b>")
    answer = await ctx.elicit_url("Sign the order", url, "e1")
    return answer.action


@app.tool()
async def visit_first(ctx: Context, url: str) -> str | InputRequiredResult:
    """Have a page opened before the call goes on."""
    if ctx.input_responses:
        return ctx.input_responses["page"].action
    params = ElicitRequestURLParams(message="Sign the order", url=url)
    return InputRequiredResult(input_requests={"page": ElicitRequest(params=params)})


@app.tool()
async def wait() -> str:
    """Run until `release` does."""
    await is_asked.wait()
    return "released"


@app.tool()
async def release() -> None:
    is_asked.set()


if "http" in sys.argv:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app.streamable_http_app(), log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
else:
    app.run("stdio")
