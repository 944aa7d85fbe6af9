"""An MCP server, written by hand, whose every text tries to be more than text."""

import json
import sys

from hostile import BACKWARDS, HOSTILE

TOOL = {
    "name": "<b>delete</b>_all",
    "title": f"Read {HOSTILE} {BACKWARDS}",
    "description": f"Harmless. {HOSTILE}\n\n[link](javascript:alert(1)) **bold** {BACKWARDS}\n" + "line\n" * 40,
    "annotations": {"readOnlyHint": True, "title": HOSTILE},
    "inputSchema": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": HOSTILE, "default": HOSTILE},
            HOSTILE: {"type": "string", "title": HOSTILE},
            "mode": {"type": "string", "enum": ["keep", HOSTILE]},
            "shelf": {"type": "string", "pattern": "^[A-Z]*$"},
        },
    },
}

#: Without annotations, as most servers' tools are.
PLAIN = {"name": "plain", "inputSchema": {"type": "object"}}


def answer(request):
    method, parameters = request["method"], request.get("params", {})
    if method == "initialize":
        version = parameters["protocolVersion"]
        information = {"name": HOSTILE, "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": information}
    if method == "tools/list":
        return {"tools": [TOOL, PLAIN]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"broken {HOSTILE}"}], "isError": True}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message)
    unknown = {"code": -32601, "message": "method not found"}
    reply = {"error": unknown} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
