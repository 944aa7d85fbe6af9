"""``python -m bench.flood``: what the server of a kernel that floods it uses, and how long others wait."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.blocking.client import BlockingKernelClient

SERVER = Path(__file__).with_name("server.py")
WAIT = 30
_RAW = """
from comm import create_comm
import time
line = create_comm(target_name="t", comm_id="agentbox-flood", primary=False)
ends_at = time.monotonic() + {seconds}
while time.monotonic() < ends_at:
    line.send(data={data})
"""
_CALLS = """
import threading, time
from jupyter_agentbox.kernel import runtime
link, text = runtime.link(), "x" * 30_000_000
def ask():
    try:
        link.call("bench", "add", {{"a": 1, "b": 2, "text": text}})
    except Exception:
        pass
threads = [threading.Thread(target=ask, daemon=True) for _ in range(24)]
for thread in threads: thread.start()
time.sleep({seconds})
"""
#: What a kernel does without end.
FLOODS = {
    "messages of 8 MB of empty lists": _RAW.replace("{data}", "[[]] * 2_700_000"),
    "small messages": _RAW.replace("{data}", "{{'type': 'nonsense', 'id': 'x'}}"),
    "24 waiting calls of 30 MB": _CALLS,
}


class Server:
    """A Jupyter server in a directory of its own."""

    def __init__(self, root: Path) -> None:
        for name in ("config", "data", "runtime", "home"):
            (root / name).mkdir()
        entry = {"command": sys.executable, "args": [str(SERVER), "1"]}
        (root / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"bench": entry}}))
        self.root, self.token, self.url = root, secrets.token_hex(8), ""
        places = {f"JUPYTER_{name.upper()}_DIR": str(root / name) for name in ("config", "data", "runtime")}
        environment = {**os.environ, **places, "HOME": str(root / "home"), "JUPYTER_TOKEN": self.token}
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--port=0", "--ip=127.0.0.1"]
        extension = "--ServerApp.jpserver_extensions={'jupyter_agentbox': True}"
        with (root / "log").open("wb") as log:
            self.process = subprocess.Popen([*command, extension], env=environment, stdout=log, stderr=log)
        until = time.monotonic() + WAIT
        while not self.url and time.monotonic() < until:
            for path in (root / "runtime").glob("jpserver-*.json"):
                self.url = json.loads(path.read_text() or "{}").get("url", "")
            time.sleep(0.1)

    @property
    def memory(self) -> float:
        """Its memory in MB."""
        return psutil.Process(self.process.pid).memory_info().rss / 1e6

    def ask(self, method: str, path: str, body: Any = None) -> tuple[Any, float]:
        """Ask; return the answer and the seconds that it took."""
        request = urllib.request.Request(
            self.url + path, method=method, data=json.dumps(body).encode() if body else None
        )
        request.add_header("Authorization", f"token {self.token}")
        began = time.monotonic()
        with urllib.request.urlopen(request, timeout=120) as answer:
            value = json.loads(answer.read() or b"null")
        return value, time.monotonic() - began

    def kernel(self) -> BlockingKernelClient:
        """Start a kernel and connect to its shell only: nobody else reads what it says."""
        found, _ = self.ask("POST", "api/kernels", {"name": "python3"})
        client = BlockingKernelClient(connection_file=str(self.root / "runtime" / f"kernel-{found['id']}.json"))
        client.load_connection_file()
        client.start_channels(hb=False, iopub=False, stdin=False)
        client.kernel_info(reply=True, timeout=WAIT)
        return client


def flood(code: str, seconds: float) -> dict[str, float]:
    """Run the code in a kernel of a new server; return the most memory and the longest waits of others meanwhile."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        server = Server(Path(directory))
        try:
            hostile, other = server.kernel(), server.kernel()
            time.sleep(1)
            before = most = server.memory
            status = listing = 0.0
            hostile.execute(code.format(seconds=seconds))
            ask = "from jupyter_agentbox.kernel import runtime; runtime.link().call('bench', 'add', {'a': 7, 'b': 8})"
            time.sleep(seconds / 3)
            other.execute(ask)
            began, decided = time.monotonic(), 0.0
            while time.monotonic() - began < seconds:
                status = max(status, server.ask("GET", "api/status")[1])
                page, took = server.ask("GET", "jupyter-agentbox/approvals?status=pending&limit=200")
                listing, most = max(listing, took), max(most, server.memory)
                for one in page["approvals"]:
                    if not decided and (one["call"]["arguments"] or {}).get("a") == 7:
                        answer = {"decision": "allow_once", "digest": one["call"]["digest"]}
                        server.ask("POST", f"jupyter-agentbox/approvals/{one['id']}/decision", answer)
                        decided = time.monotonic() - began
                time.sleep(0.05)
            log = (server.root / "log").stat().st_size / 1e6
            kept = sum(file.stat().st_size for file in (server.root / "data" / "agentbox").glob("approvals*")) / 1e6
        finally:
            for child in psutil.Process(server.process.pid).children(recursive=True):
                child.kill()
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
    return {
        "memory, MB more": most - before,
        "longest GET api/status, s": status,
        "longest list of what waits, s": listing,
        "another kernel's call decided after, s": decided or float("nan"),
        "log, MB": log,
        "database, MB": kept,
    }


def main() -> None:
    """Run the floods and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--only", default="", help="a part of the flood's name")
    options = parser.parse_args()
    for name, code in FLOODS.items():
        if options.only in name:
            print(name)
            for what, value in flood(code, options.seconds).items():
                print(f"  {what}: {value:,.2f}", flush=True)


if __name__ == "__main__":
    main()
