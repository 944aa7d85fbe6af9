"""An MCP server over stdio for ``bench.hub``: its tools note in a file that they ran."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
TOOLS = [{"name": name, "description": "Runs.", "inputSchema": SCHEMA} for name in ("allowed", "asked")]

for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "bench", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            with Path(os.environ["RUNS"]).open("a", encoding="ascii") as file:
                file.write(message["params"]["arguments"]["id"] + "\n")
            result = {"content": [{"type": "text", "text": "done"}]}
        case _:
            continue
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()
