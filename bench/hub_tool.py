"""An MCP server over stdio for ``bench.hub``: its tools note in a file that they ran, and answer how long that took."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from threading import Lock, Thread
from typing import Any

SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
TOOLS = [{"name": name, "description": "Runs.", "inputSchema": SCHEMA} for name in ("allowed", "asked")]
#: Seconds that a tool waits for something else, as a query does.
SECONDS = float(os.environ.get("SECONDS", "0"))
writing = Lock()


def answer(message: dict[str, Any], result: dict[str, Any], *, kind: str = "result") -> None:
    """Write an answer."""
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], kind: result}) + "\n")
        sys.stdout.flush()


def call(message: dict[str, Any]) -> None:
    """Run a tool."""
    began = time.perf_counter()
    with Path(os.environ["RUNS"]).open("a", encoding="ascii") as file:
        file.write(message["params"]["arguments"]["id"] + "\n")
    if SECONDS:
        time.sleep(SECONDS)
    answer(message, {"content": [{"type": "text", "text": f"{time.perf_counter() - began:.6f}"}]})


for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "bench", "version": "1"}
            answer(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
        case "tools/list":
            answer(message, {"tools": TOOLS})
        case "tools/call" if SECONDS:
            Thread(target=call, args=(message,)).start()
        case "tools/call":
            call(message)
        case other if "id" in message:  # without an answer, a client that asks for `server/discover` waits for seconds
            answer(message, {"code": -32601, "message": f"there is no method `{other}`"}, kind="error")
