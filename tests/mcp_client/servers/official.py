"""A server on the official SDK, which speaks both eras. ``official.py [http]``: over HTTP it prints its port first."""

import asyncio
import socket
import sys

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

app = MCPServer("official")
cancelled: list[str] = []
is_slow = anyio.Event()
is_cancelled = anyio.Event()


@app.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
def text(size: int) -> str:
    return "x" * size


@app.tool()
async def slow(ctx: Context) -> str:
    """Say how far it is, then wait for ever."""
    await ctx.report_progress(1, 3, "waiting")
    try:
        is_slow.set()
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        cancelled.append("slow")
        is_cancelled.set()
        raise
    return "never"


@app.tool()
async def await_slow() -> None:
    await is_slow.wait()


@app.tool()
async def await_cancelled() -> None:
    await is_cancelled.wait()


@app.tool()
def count_cancelled() -> int:
    return len(cancelled)


@app.tool()
async def grow(ctx: Context) -> str:
    """Add a tool and say so."""
    app.add_tool(add, name="grown")
    await ctx.notify_tools_changed()
    return "ok"


if "http" in sys.argv:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app.streamable_http_app(json_response="json" in sys.argv), log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
else:
    app.run("stdio")
