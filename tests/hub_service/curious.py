"""An MCP server over stdio that asks what it is told to ask, and writes what it is answered to a file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "take_back", "crash")]

calls: dict[Any, dict[str, Any]] = {}


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def finish(id: Any, text: str) -> None:
    send(id=id, result={"content": [{"type": "text", "text": text}]})


def answer(id: Any, method: str, params: Any) -> None:
    if method == "initialize":
        info = {"name": "curious", "version": "1"}
        version = params["protocolVersion"]
        send(id=id, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        send(id=id, result={"tools": TOOLS})
    elif method == "tools/call" and params["name"] == "ask":
        questions = params["arguments"]["questions"]
        calls[id] = {"answers": [None] * len(questions), "left": len(questions)}
        for index, question in enumerate(questions):
            send(id=f"{id}/{index}", method="elicitation/create", params=question)
    elif method == "tools/call" and params["name"] == "crash":
        os._exit(3)
    elif method == "tools/call":
        for call in tuple(calls):
            send(method="notifications/cancelled", params={"requestId": f"{call}/0"})
            finish(call, "taken back")
        calls.clear()
        finish(id, "done")
    else:
        send(id=id, error={"code": -32601, "message": "no such method"})


def hear(message: Any) -> None:
    call, _, index = message["id"].partition("/")
    id = int(call) if call.isdecimal() else call
    said = message.get("result") or message["error"]
    with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")
    if (known := calls.get(id)) is not None:
        known["answers"][int(index)] = said
        known["left"] -= 1
        if not known["left"]:
            finish(id, json.dumps(known["answers"]))
            del calls[id]


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        hear(message)
    elif "id" in message:
        answer(message["id"], message["method"], message.get("params"))
