"""An MCP server of the handshake era, written by hand so that it can misbehave. ``raw.py [behavior]``."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

behavior = sys.argv[1] if len(sys.argv) > 1 else ""
lock = threading.Lock()
cancelled = []
events = {}


def write(data):
    with lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def send(message):
    write(json.dumps(message).encode() + b"\n")


def answer(request, **result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def text(request, value):
    answer(request, content=[{"type": "text", "text": value}])


def refuse(request, code, message):
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})


TOOLS = {}


def tool(function):
    TOOLS[function.__name__] = function
    return function


@tool
def echo(request, arguments):
    text(request, json.dumps(arguments, sort_keys=True))


@tool
def crash(request, arguments):
    print("the last words", file=sys.stderr, flush=True)
    os._exit(int(arguments.get("status", 3)))


@tool
def garbage(request, arguments):
    write(b"Listening on port 8080\n\n{not json}\n[]\n\x1b[31mred\x1b[0m\n")
    text(request, "after garbage")


@tool
def broken_answer(request, arguments):
    write(b'{"jsonrpc":"2.0","id":%d,"result":null}\n' % request["id"])


@tool
def cut_answer(request, arguments):
    head = b'{"result":' if arguments.get("id_last") else b'{"jsonrpc":"2.0","id":%d,"result":' % request["id"]
    write(head + b'{"content":[{"type":"text","text":"abc')
    os._exit(3)


@tool
def refused(request, arguments):
    send({"jsonrpc": "2.0", "id": request["id"], "error": arguments["error"]})


@tool
def invalid_utf8(request, arguments):
    write(
        b'\xff\xfe\n{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\xffb"}]}}\n' % request["id"]
    )


@tool
def lone_surrogate(request, arguments):
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"cut \\ud83d"}]}}\n' % request["id"])


@tool
def big(request, arguments):
    head, tail = b'{"jsonrpc":"2.0","id":%d,"result":' % request["id"], b"}\n"
    if arguments.get("id_last"):
        head, tail = b'{"result":', b',"jsonrpc":"2.0","id":%d}\n' % request["id"]
    if arguments.get("id_hidden"):
        head, tail = b'{"x":1,"id":%d,"result":' % request["id"], b',"y":2}\n'
    write(head + b'{"content":[{"type":"text","text":"' + b"x" * arguments["size"] + b'"}]}' + tail)


@tool
def many(request, arguments):
    numbers = b",".join([b"1"] * arguments["count"])
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":[' % request["id"]
    write(head + numbers + b"]}}}\n")


@tool
def eat(request, arguments):
    text(request, str(len(bytearray(arguments["size"]))))


@tool
def wait(request, arguments):
    event = events[request["id"]] = threading.Event()

    def finish():
        event.wait(60)
        if request["id"] not in cancelled:
            text(request, "released")

    threading.Thread(target=finish, daemon=True).start()


@tool
def release(request, arguments):
    for event in events.values():
        event.set()
    text(request, "ok")


@tool
def was_cancelled(request, arguments):
    text(request, json.dumps(len(cancelled)))


@tool
def progress(request, arguments):
    token = request["params"]["_meta"]["progressToken"]
    for step in (1, 2):
        params = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    text(request, "done")


@tool
def much_progress(request, arguments):
    token = request["params"]["_meta"]["progressToken"]
    params = b'{"progressToken":%d,"progress":%d}'
    steps = (params % (token, step) for step in range(1, arguments["steps"] + 1))
    write(b"".join(b'{"jsonrpc":"2.0","method":"notifications/progress","params":%s}\n' % step for step in steps))
    text(request, "done")


@tool
def odd_progress(request, arguments):
    token = request["params"]["_meta"]["progressToken"]
    head = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,' % token
    notifications = (head + numbers.encode() + b"}}\n" for numbers in arguments["numbers"])
    answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"done"}]}}\n' % request["id"]
    write(b"".join(notifications) + answer)


@tool
def log_message(request, arguments):
    send({"jsonrpc": "2.0", "method": "notifications/message", "params": arguments["params"]})
    text(request, "ok")


@tool
def environment(request, arguments):
    text(request, json.dumps(dict(os.environ)))


@tool
def secret(request, arguments):
    print("token is", os.environ["TOKEN"], file=sys.stderr, flush=True)
    refuse(request, -32000, "bad token " + os.environ["TOKEN"])


@tool
def pid(request, arguments):
    text(request, str(os.getpid()))


@tool
def grandchildren(request, arguments):
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    daemon = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    child.stdout.readline(), daemon.stdout.readline()
    text(request, json.dumps([child.pid, daemon.pid]))


@tool
def more_tools(request, arguments):
    TOOLS["added"] = echo
    send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    text(request, "ok")


@tool
def ask(request, arguments):
    params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    send({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": params})
    events["q1"] = request


@tool
def structured(request, arguments):
    answer(request, content=[], structuredContent=arguments["value"], _meta={"m": 1})


@tool
def failing(request, arguments):
    answer(request, content=[{"type": "text", "text": "no such order"}], isError=True)


@tool
def block(request, arguments):
    content = [
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
    ]
    answer(request, content=content * arguments.get("times", 1))


@tool
def bad_result(request, arguments):
    good = [{"type": "text", "text": "one"}] * arguments.get("after", 0)
    answer(request, content=[*good, {"type": "text"}] if good else "not a list")


def schema(name):
    result = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
    tool = {"name": name, "inputSchema": {"type": "object"}}
    return {**tool, "outputSchema": result} if name == "structured" else tool


def list_tools(request):
    cursor = (request.get("params") or {}).get("cursor")
    if behavior == "deaf" and "added" in TOOLS:
        print("not now", file=sys.stderr, flush=True)
        return None
    tools = [schema(name) for name in TOOLS]
    if behavior == "endless":
        number = int(cursor or 0)
        return answer(request, tools=[schema(f"t{number}")], nextCursor=str(number + 1))
    if behavior == "circle":
        return answer(request, tools=[schema("t")], nextCursor="again")
    if behavior == "long-list":
        tools[0]["description"] = "x" * 17_000_000
    if behavior == "odd-list":
        tools = [
            {"name": "untyped", "inputSchema": {"properties": {"a": {"type": "string"}}}},
            {"name": "schemaless"},
            {"name": "good", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}, "title": None},
            {"name": "good", "description": "second", "inputSchema": {"type": "object"}},
            {"name": "bad", "inputSchema": {"type": "object", "properties": 5}},
            {"name": "list", "inputSchema": []},
            {"description": "nameless", "inputSchema": {"type": "object"}},
            "not a tool",
        ]
    return answer(request, tools=tools)


def handle(request):
    method = request.get("method")
    if method == "initialize":
        if behavior == "hang":
            print("still thinking", file=sys.stderr, flush=True)
            time.sleep(600)
        capabilities = {"tools": {"listChanged": True}}
        server = {"name": "raw", "version": "1"}
        version = request["params"]["protocolVersion"]
        more = {} if behavior == "incomplete" else {"capabilities": capabilities}
        answer(request, protocolVersion=version, serverInfo=server, **more)
    elif method == "tools/list":
        list_tools(request)
    elif method == "tools/call":
        TOOLS[request["params"]["name"]](request, request["params"].get("arguments") or {})
    elif method == "notifications/cancelled":
        cancelled.append(request["params"]["requestId"])
    elif method == "server/discover" and behavior == "ends-at-probe":
        os._exit(1)
    elif method is None and request["id"] == "q1":
        asked = events.pop("q1")
        if asked["params"]["arguments"].get("fail"):
            refuse(asked, -32000, "no input")
        else:
            text(asked, json.dumps(request.get("error")))
    elif "id" in request:
        refuse(request, -32601, "no such method")


if behavior == "crash":
    print("cannot find the database", file=sys.stderr, flush=True)
    sys.exit(4)
if behavior == "count":
    with Path(sys.argv[2]).open("a") as file:
        file.write("started\n")
for line in sys.stdin.buffer:
    handle(json.loads(line))
