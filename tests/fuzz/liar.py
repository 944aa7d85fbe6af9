"""An MCP server whose answers to ``tools/list`` and ``tools/call`` stand in two files: ``liar.py LIST RESULT``."""

import json
import sys
from pathlib import Path

LIST, RESULT = map(Path, sys.argv[1:])
HANDSHAKE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "liar", "version": "1"},
}


def send(text):
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass") + b"\n")
    sys.stdout.buffer.flush()


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        head = '{"jsonrpc": "2.0", "id": ' + json.dumps(message["id"]) + ', "result": '
        method = message["method"]
        if method == "initialize":
            send(head + json.dumps(HANDSHAKE) + "}")
        elif method == "tools/list":
            send(head + LIST.read_text("utf-8", "surrogatepass") + "}")
        elif method == "tools/call":
            send('{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}')
            send(head + RESULT.read_text("utf-8", "surrogatepass") + "}")
        else:
            error = {"code": -32601, "message": "unknown method"}
            send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))


main()
