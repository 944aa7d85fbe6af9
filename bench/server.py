"""An MCP server that starts in no time: ``python server.py NUMBER_OF_TOOLS``."""

from __future__ import annotations

import json
import sys
from typing import Any

INTEGER = {"type": "integer"}
ADD = {
    "name": "add",
    "description": "Add two numbers.",
    "inputSchema": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]},
}


def tool(number: int) -> dict[str, Any]:
    properties = {f"field_{index}": {"type": "string", "description": f"Field {index}."} for index in range(8)}
    item = {"type": "object", "properties": {"name": {"type": "string"}, "count": INTEGER}, "required": ["name"]}
    return {
        "name": f"tool_{number}",
        "description": f"Does the thing number {number}.\n\nWith some more words about it.",
        "inputSchema": {
            "type": "object",
            "properties": {**properties, "items": {"type": "array", "items": item}, "kind": {"enum": ["a", "b", "c"]}},
            "required": ["field_0", "field_1"],
        },
        "outputSchema": {"type": "object", "properties": {"item": item, "total": {"type": "number"}}},
    }


def main() -> None:
    """Answer until the input ends."""
    tools = [ADD, *(tool(number) for number in range(int(sys.argv[1]) - 1))]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        body: dict[str, Any] = {"error": {"code": -32601, "message": "unknown method"}}
        match message["method"]:
            case "initialize":
                version = message["params"]["protocolVersion"]
                info = {"name": "bench", "version": "1"}
                capabilities = {"tools": {}}
                body = {"result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}}
            case "tools/list":
                body = {"result": {"tools": tools}}
            case "tools/call":
                arguments = message["params"]["arguments"]
                body = {"result": {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}}
            case "ping":
                body = {"result": {}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
