"""A server on the official SDK that says what it is told to say. ``talkative.py http`` prints its port first."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any, cast

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

app = MCPServer("talkative")
is_released = asyncio.Event()


@app.tool()
async def talk(ctx: Context, text: str, times: int = 1, level: str = "info", waits: bool = False) -> str:
    """Report progress and log, so many times; then perhaps wait until `release` is called."""
    for time in range(1, times + 1):
        await ctx.report_progress(time, times, text)
        await ctx.log(cast(Any, level), f"{text} {time}")
    if waits:
        await is_released.wait()
    return "done"


@app.tool()
async def announce(ctx: Context, text: str) -> str:
    """Log to nobody in particular: over HTTP not on the stream of the call, but on the one that is for all messages."""
    await ctx.session.send_log_message(level="info", data=text)
    await ctx.info("done")
    return "done"


@app.tool()
async def wait() -> str:
    """Say nothing until `release` is called."""
    await is_released.wait()
    return "done"


@app.tool()
async def release() -> None:
    """End what waits."""
    is_released.set()


@app.tool()
async def crash() -> None:
    """End the server."""
    os._exit(3)


if "http" in sys.argv:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app.streamable_http_app(), log_level="error")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
else:
    app.run("stdio")
