# ruff: noqa: ARG002  # every tool gets the request and the arguments
"""A streamable HTTP server of the handshake era, written by hand so that it can misbehave. Prints its port first."""

import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

released = threading.Event()
cancelled = []
sessions = set()
#: How the server says that it does not know a session: by the specification, or as the SDKs for TypeScript and Python.
NO_SESSION = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
UNKNOWN_SESSION = (404, b"")
if sys.argv[1:] == ["400"]:
    UNKNOWN_SESSION = (400, json.dumps({"jsonrpc": "2.0", "error": NO_SESSION, "id": None}).encode())
if sys.argv[1:] == ["400 text"]:
    UNKNOWN_SESSION = (400, NO_SESSION["message"].encode(), "text/plain")
ran = []
descriptions = {}
TOOLS = ["echo", "wait", "release", "status", "hang_up", "cut", "cut_events", "big", "was_cancelled", "forget", "text"]
TOOLS += ["rename", "error", "ran", "let_poll", "many", "compressed", "ask"]
#: The statuses with which the next answers to questions are refused, and the answer that was taken.
refusals = []
taken = []
is_taken = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def answer(self, request, result, **headers):
        message = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        self.reply(200, json.dumps(message).encode(), **headers)

    def text(self, request, value):
        self.answer(request, {"content": [{"type": "text", "text": value}]})

    def do_GET(self):
        is_lost = "Last-Event-ID" in self.headers and self.headers["Mcp-Session-Id"] not in sessions
        self.reply(*(UNKNOWN_SESSION if is_lost else (405,)))

    def do_DELETE(self):
        if sys.argv[1:] == ["mute at the end"]:
            released.wait(120)
        self.reply(200)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/sse":
            return self.reply(405)
        if self.path in ("/elsewhere", "/moved"):
            origin = f"http://localhost:{self.server.server_port}" if self.path == "/elsewhere" else ""
            return self.reply(307, Location=f"{origin}/mcp")
        method = request.get("method")
        if method is None:
            return self.hear(request)
        if method == "initialize":
            session = f"s{len(sessions)}"
            sessions.add(session)
            result = {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "1"},
            }
            return self.answer(request, result, Mcp_Session_Id=session)
        if method == "server/discover":
            return self.reply(400, b"what?", kind="text/plain")
        if self.headers["Mcp-Session-Id"] not in sessions:
            return self.reply(*UNKNOWN_SESSION)
        if method == "notifications/cancelled":
            cancelled.append(request["params"]["requestId"])
            released.set()
        if "id" not in request:
            return self.reply(202)
        if method == "tools/list":
            tools = [{"name": name, "inputSchema": {}, "description": descriptions.get(name, "")} for name in TOOLS]
            return self.answer(request, {"tools": tools})
        arguments = request["params"].get("arguments") or {}
        ran.append(request["params"]["name"])
        return getattr(self, "tool_" + request["params"]["name"])(request, arguments)

    def hear(self, answer):
        if refusals and refusals[0] == "mute":
            refusals.pop(0)
            released.wait(60)
        if refusals:
            return self.reply(refusals.pop(0))
        taken.append(answer["result"])
        is_taken.set()
        return self.reply(202)

    def tool_ask(self, request, arguments):
        refusals.extend(arguments["refusals"])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        params = {"message": "Where to?", "requestedSchema": {"type": "object", "properties": {}}}
        self.write_event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        is_taken.wait(60)
        result = {"content": [{"type": "text", "text": json.dumps(taken)}]}
        self.write_event({"jsonrpc": "2.0", "id": request["id"], "result": result})
        self.close_connection = True

    def write_event(self, message):
        self.wfile.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
        self.wfile.flush()

    def tool_echo(self, request, arguments):
        self.text(request, self.headers["Authorization"] or "")

    def tool_rename(self, request, arguments):
        descriptions["echo"] = "Says it louder."
        self.tool_forget(request, arguments)

    def tool_ran(self, request, arguments):
        self.text(request, str(ran.count(arguments["name"])))

    def tool_error(self, request, arguments):
        message = {"jsonrpc": "2.0", "id": request["id"], "error": arguments["error"]}
        self.reply(arguments.get("status", 200), json.dumps(message).encode())

    def tool_text(self, request, arguments):
        self.reply(200, b"<html>", kind="text/html")

    def tool_compressed(self, request, arguments):
        message = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}
        spaces = b" " * arguments["size"]
        self.reply(200, gzip.compress(json.dumps(message).encode() + spaces), Content_Encoding="gzip")

    def tool_wait(self, request, arguments):
        released.wait(60)
        self.text(request, "released")

    def tool_release(self, request, arguments):
        released.set()
        self.text(request, "ok")

    def tool_was_cancelled(self, request, arguments):
        self.text(request, str(len(cancelled)))

    def tool_status(self, request, arguments):
        self.reply(arguments["status"], b"<h1>no</h1>", kind="text/html")

    def tool_hang_up(self, request, arguments):
        self.close_connection = True

    def tool_cut(self, request, arguments, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"jsonrpc"')
        self.close_connection = True

    def tool_cut_events(self, request, arguments):
        self.tool_cut(request, arguments, kind="text/event-stream")

    def tool_big(self, request, arguments):
        content = [{"type": "text", "text": "x" * arguments["size"]}]
        self.give(request, {"content": content}, events=arguments.get("events"))

    def tool_many(self, request, arguments):
        structured = {"a": [1] * arguments["count"], "text": "," * arguments["count"]}
        self.give(request, {"content": [], "structuredContent": structured}, events=arguments.get("events"))

    def give(self, request, result, *, events):
        message = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
        if events:
            self.reply(200, f"event: message\ndata: {message}\n\n".encode(), kind="text/event-stream")
        else:
            self.reply(200, message.encode())

    def tool_let_poll(self, request, arguments):
        if arguments["forgets"]:
            sessions.clear()
        self.reply(200, b"id: 1\nretry: 1\ndata:\n\n", kind="text/event-stream")

    def tool_forget(self, request, arguments):
        sessions.clear()
        self.text(request, "ok")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
