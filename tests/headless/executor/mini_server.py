"""A small MCP server over standard input and output, with the standard library alone: it starts in no time."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

INTEGER = {"type": "integer"}
PAIR = {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]}
POINT = {"type": "object", "properties": {"x": INTEGER, "from": {"type": "string"}}, "required": ["x"]}
GATE = {"type": "object", "properties": {"gate": {"type": "string"}}}
TOOLS = [
    {"name": "add", "description": "Add two numbers.", "inputSchema": PAIR},
    {
        "name": "Where-Is",
        "description": "Find a place.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "class": {"type": "string", "default": "city"}, "near": POINT},
            "required": ["name"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"place": POINT, "others": {"type": "array", "items": POINT}},
            "required": ["place"],
        },
    },
    {"name": "fail", "description": "Fail.", "inputSchema": {"type": "object"}},
    {"name": "chat", "description": "Say how far it is, log, and ask.", "inputSchema": GATE},
    {"name": "pid", "description": "Tell the process id.", "inputSchema": {"type": "object"}},
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def chat(token: Any) -> None:
    for step in (1, 2):
        progress = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}\u202e"}
        send({"method": "notifications/progress", "params": progress})
        log = {"level": "info", "logger": "db", "data": f"row {step} {os.environ.get('API_KEY', '')}\x1b[31m"}
        send({"method": "notifications/message", "params": log})
    send({"id": "q", "method": "roots/list"})


def call(name: str, arguments: dict[str, Any], token: Any) -> dict[str, Any]:
    if name == "chat":
        chat(token)
        if "gate" in arguments:
            Path(arguments["gate"]).read_text()  # a pipe: until somebody writes
        return {"content": [{"type": "text", "text": "chatted"}]}
    if name == "add":
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}
    if name == "Where-Is":
        place = {"x": len(arguments["name"]), "from": json.dumps(arguments, sort_keys=True)}
        return {"content": [], "structuredContent": {"place": place, "others": [place]}}
    if name == "pid":
        return {"content": [{"type": "text", "text": str(os.getpid())}]}
    return {"content": [{"type": "text", "text": "it went wrong"}], "isError": True}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "mini", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {}, (params.get("_meta") or {}).get("progressToken"))
    return {} if method == "ping" else None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        body = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown method"}}
        send({"id": message["id"], **body})


if __name__ == "__main__":
    main()
