"""A real JupyterLab in a process of its own, with its REST API and its notebooks."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import nbformat

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.sandbox.install import kernelspec
from tests.ports import KEEP_KERNEL_PORTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "jupyter_agentbox" / "labextension"
SHOP = {"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"]}
STRANGE = {"command": sys.executable, "args": [str(Path(__file__).parent / "servers" / "strange.py")]}

#: Untrusted like all names that an MCP configuration brings along.
STRANGE_NAME = "<b>odd</b>\u202eserver"

TIMEOUT = 180

#: Milliseconds that a page may take to do something; generous, for machines that are busy.
PATIENCE = 60_000

#: JupyterLab asks for no news and saves nothing by itself, which would come between, and is as patient with a kernel.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/completer-extension:manager": {"providerTimeout": PATIENCE},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}

#: A page that goes away leaves requests behind. One that reads a file while the server stops is never done, nor is the
#: thread of anyio that read for it, which is no daemon: the process would never end.
CONFIG = """\
from anyio._backends._asyncio import WorkerThread

WorkerThread.daemon = True

# A page asks whether JupyterLab should be built again; to answer, JupyterLab runs Node each time.
c.ServerApp.tornado_settings = {"page_config_data": {"buildCheck": False}}

# Likewise, at each start, to find out which language servers there are.
c.LanguageServerManager.autodetect = False
"""


class Lab:
    """A running JupyterLab.

    Parameters
    ----------
    root : Path
        Everything that it keeps is here.
    url : str
        Where it answers, with a slash at the end.
    token : str
        Lets tests ask its REST API.
    """

    def __init__(self, root: Path, url: str, token: str) -> None:
        self.root = root
        self.url = url
        self.token = token

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Ask the REST API."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def approvals(self, path: str, status: str = "pending") -> list[Any]:
        """Return a notebook's requests, newest first."""
        found: list[Any] = self.ask(f"jupyter-agentbox/approvals?status={status}&notebook_path={path}")["approvals"]
        return found

    def decide(self, request: Any, **answer: Any) -> None:
        """Answer a request as a program with the server's token."""
        body = {"decision": "allow_once", "digest": request["call"]["digest"], **answer}
        self.ask(f"jupyter-agentbox/approvals/{request['id']}/decision", body)

    def write_notebook(self, path: str, *sources: str, kernel: str = "python3") -> None:
        """Write a notebook and start its kernel, which is ready by the time that a page is."""
        notebook = nbformat.v4.new_notebook()
        notebook.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
        self.ask(f"api/contents/{path}", {"type": "notebook", "content": notebook}, "PUT")
        self.ask("api/sessions", {"path": path, "name": path, "type": "notebook", "kernel": {"name": kernel}})

    def install_kernel(self, name: str, level: Isolation, **config: Any) -> None:
        """Install a kernel that is sandboxed at a level, with further settings."""
        directory = self.root / "data" / "kernels" / name
        directory.mkdir(parents=True, exist_ok=True)
        spec = kernelspec(sys.executable, display_name=name, config={"levels": [level.value], **config})
        (directory / "kernel.json").write_text(json.dumps(spec))

    def read_notebook(self, path: str) -> Any:
        """Return a saved notebook."""
        return self.ask(f"api/contents/{path}")["content"]

    def shut_down_kernels(self) -> None:
        """End all kernels; what waits in them is orphaned."""
        for session in self.ask("api/sessions"):
            self.ask(f"api/sessions/{session['id']}", method="DELETE")

    @contextmanager
    def settings(self, plugin: str, values: Any) -> Iterator[None]:
        """Set what a user can set in the settings editor."""
        self.ask(f"lab/api/settings/{plugin}", {"raw": json.dumps(values)}, "PUT")
        try:
            yield
        finally:
            self.ask(f"lab/api/settings/{plugin}", {"raw": "{}"}, "PUT")

    @contextmanager
    def rules(self, *rules: Any) -> Iterator[None]:
        """Have these rules of the user."""
        path = self.root / "config" / "agentbox_rules.json"
        path.write_text(json.dumps({"rules": rules}))
        try:
            yield
        finally:
            path.unlink()

    @contextmanager
    def without_extension(self) -> Iterator[None]:
        """Serve pages that do not have the lab extension."""
        path = self.root / "config" / "labconfig" / "page_config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"disabledExtensions": {"jupyter-agentbox": True}}))
        try:
            yield
        finally:
            path.unlink()


def _environment(root: Path, token: str) -> dict[str, str]:
    places = {name: root / name for name in ("config", "runtime", "data", "ipython", "share", "work")}
    for place in places.values():
        place.mkdir()
    # A copy, so that a build that goes on during the tests changes nothing for them.
    shutil.copytree(EXTENSION, places["share"] / "labextensions" / "jupyter-agentbox")
    needy = {"command": "${AGENTBOX_TEST_UNSET}"}
    servers = {"shop": SHOP, STRANGE_NAME: STRANGE, "needy": needy}
    (places["config"] / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (places["config"] / "jupyter_server_config.py").write_text(CONFIG + KEEP_KERNEL_PORTS)
    settings = places["share"] / "lab" / "settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(json.dumps(SETTINGS))
    return {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(places["config"]),
        "JUPYTER_RUNTIME_DIR": str(places["runtime"]),
        "JUPYTER_DATA_DIR": str(places["data"]),
        "JUPYTER_PATH": str(places["share"]),
        "IPYTHONDIR": str(places["ipython"]),
        "JUPYTER_TOKEN": token,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }


@contextmanager
def running_lab(root: Path, *options: str, python: str = sys.executable) -> Iterator[Lab]:
    """Start the JupyterLab of a Python, and stop it in the end."""
    token = secrets.token_hex(16)
    environment = _environment(root, token)
    command = [
        python,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        "--port=0",
        "--ServerApp.jpserver_extensions={'jupyter_agentbox': True}",
        f"--ServerApp.root_dir={root / 'work'}",
        "--LabApp.news_url=None",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        f"--LabServerApp.app_settings_dir={root / 'share' / 'lab' / 'settings'}",
        *options,
    ]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        log = (root / "server.log").open("w")
        address: Future[str] = Future()
        follower = threading.Thread(target=_follow, args=(process.stderr, log, address))
        follower.start()
        try:
            lab = Lab(root, address.result(TIMEOUT), token)
            _await_answer(lab)
            yield lab
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT)
            follower.join(TIMEOUT)


def _follow(lines: Iterable[str], log: TextIO, address: Future[str]) -> None:
    with log:
        for line in lines:
            log.write(line)
            log.flush()
            if (found := re.search(r"http://127\.0\.0\.1:\d+/", line)) and not address.done():
                address.set_result(found[0])


def _await_answer(lab: Lab) -> None:
    """The server prints its address before it listens, and says nothing when it does."""
    pause = threading.Event()
    for _ in range(TIMEOUT * 20):
        try:
            lab.ask("api/status")
        except urllib.error.URLError:
            pause.wait(0.05)
        else:
            return
    raise TimeoutError(lab.url)
