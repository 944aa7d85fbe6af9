"""An MCP server that lists the tools of a corpus file and answers each call with the arguments it got."""

import json
import sys
from pathlib import Path

tools = json.loads(Path(sys.argv[1]).read_text())["tools"]
for line in sys.stdin:
    request = json.loads(line)
    match request["method"]:
        case "initialize":
            result = {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "corpus", "version": "1"},
            }
        case "tools/list":
            result = {"tools": tools}
        case "tools/call":
            result = {"content": [{"type": "text", "text": json.dumps(request["params"]["arguments"])}]}
        case _:
            if "id" in request:
                error = {"code": -32601, "message": "no such method"}
                print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
