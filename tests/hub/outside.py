"""What a documented Hub reaches elsewhere: the warehouse's MCP server, and a collector of records, over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_QUERY = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
_LIST = {"type": "object", "properties": {"like": {"type": "string"}, "password": {"type": "string"}}}
TOOLS = {"list_tables": _LIST, "query": _QUERY, "drop_table": {"type": "object"}}


class Outside:
    """What was received.

    Attributes
    ----------
    called : list of tuple
        The name and arguments of each tool that ran, whom it was for, and with which credential.
    records : list of tuple
        The token and the body of what the collector was sent.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.called: list[tuple[str, Any, str, str]] = []
        self.records: list[tuple[str, str]] = []

    def answer(self, headers: Any, message: Any) -> Any:
        """Return the result of a request to the MCP server."""
        method, params = message["method"], message.get("params", {})
        if method == "initialize":
            server = {"name": "warehouse", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]}
        if method == "tools/call":
            who = headers["X-On-Behalf-Of"], headers["Authorization"]
            self.called.append((params["name"], params["arguments"], *who))
            return {"content": [{"type": "text", "text": f"{params['name']} for {who[0]}"}]}
        return None


@contextmanager
def running_outside() -> Iterator[Outside]:
    """Listen on this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def reply(self, status: int, body: Any = None) -> None:
            sent = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def do_GET(self) -> None:
            self.reply(405)

        def do_DELETE(self) -> None:
            self.reply(200)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/logs":
                outside.records.append((self.headers["Authorization"], body.decode()))
                return self.reply(200, {})
            message = json.loads(body)
            if "id" not in message:
                return self.reply(202)
            result = outside.answer(self.headers, message)
            outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
            return self.reply(200, {"jsonrpc": "2.0", "id": message["id"], **outcome})

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        outside = Outside(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield outside
        finally:
            server.shutdown()
            thread.join()
