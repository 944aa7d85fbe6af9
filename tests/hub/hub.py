"""A real JupyterHub with its proxy on 127.0.0.1, under a prefix, with a few users and services."""

from __future__ import annotations

import html
import importlib.util
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
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, Protocol

from jupyter_client.blocking.client import BlockingKernelClient

from tests.browser.lab import SETTINGS
from tests.ports import kept_port

from .code_blocks import HOW_TO, blocks_of

ROOT = Path(__file__).parents[2]
PROXY = shutil.which(
    "configurable-http-proxy", path=f"{ROOT / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
)
PREFIX = "/jhub/"
API = "jupyter-agentbox/"
#: Seconds that anything may take which has to happen: a busy machine is slow.
TIMEOUT = 180

#: The user whose servers they are, one that has the right to use them, and one that has not.
OWNER, COLLABORATOR, STRANGER = "ada", "bob", "eve"
#: One that has the right to use them, and to decide at servers of their own only.
COLLEAGUE = "kim"
#: One that has the right to use all servers of everybody, and no other.
INSPECTOR = "max"
#: The named server at which programs may decide, and who has the scope for it.
ANY = "any"
#: The named server where the Hub's scopes also say who reads and manages; `test_principals.py` starts it.
SCOPED = "scoped"
#: The named server that is stopped when it is idle, and its kernels, too: after how many seconds, and for how many a
#: request waits there, which is longer. In between, a kernel gives a sign of life every five seconds.
CULLED, IDLE, WAITS = "culled", 10, 14
#: The rights to decide, to read, and to manage servers and rules; and the heading of the page that defines them.
SCOPES = "Say who reads, decides and manages"
DECIDE, READ, MANAGE = "custom:agentbox:decide", "custom:agentbox:read", "custom:agentbox:manage"

#: Starts a server whose system-wide configuration is in a directory of the tests.
LAUNCH = """
import sys
import jupyter_core.paths
jupyter_core.paths.SYSTEM_CONFIG_PATH = [sys.argv.pop(1)]
sys.argv[0] = "jupyterhub-singleuser"
from jupyterhub.singleuser import main
main()
"""

CONFIG = """
import json, sys
facts = json.loads({facts!r})
c.JupyterHub.bind_url = facts["url"]
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = facts["hub_port"]
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.JupyterHub.allow_named_servers = True
c.JupyterHub.tornado_settings = {{"slow_stop_timeout": {timeout}}}
c.Spawner.start_timeout = c.Spawner.http_timeout = {timeout}
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = facts["password"]
c.Authenticator.allow_all = True
c.Authenticator.enable_auth_state = True
c.CryptKeeper.keys = [facts["crypt_key"]]
c.ConfigurableHTTPProxy.command = [facts["proxy"]]
c.ConfigurableHTTPProxy.api_url = facts["proxy_api"]
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = facts["homes"] + "/{{username}}"
c.Spawner.cmd = [sys.executable, "-c", facts["launch"], facts["site"]]
c.Spawner.notebook_dir = "~"
c.Spawner.environment = facts["environment"]
traits_of = {{
    {any!r}: ["AgentBoxApp.decide_with=any", "AgentBoxApp.deciders=scope", "AgentBoxApp.approval_timeout=None"],
    {scoped!r}: [
        "AgentBoxApp.decide_with=any",
        "AgentBoxApp.deciders=scope",
        "ServerApp.authorizer_class=jupyter_agentbox.hub.ScopeAuthorizer",
    ],
    {culled!r}: [
        "AgentBoxApp.approval_timeout={waits}",
        "MappingKernelManager.cull_idle_timeout={idle}",
        "MappingKernelManager.cull_interval=1",
        "MappingKernelManager.cull_busy=True",
    ],
}}
def arguments_of(spawner):
    if spawner.name == {culled!r}:
        spawner.environment["JUPYTERHUB_ACTIVITY_INTERVAL"] = "1"  # what the Hub is told every five minutes otherwise
    spawner.args = [
        "--allow-root",
        "--LabApp.news_url=None",
        f"--LabServerApp.app_settings_dir={{facts['lab_settings']}}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        *(f"--{{trait}}" for trait in traits_of.get(spawner.name, [])),
    ]
c.Spawner.pre_spawn_hook = arguments_of
c.Spawner.server_token_scopes = lambda spawner: [
    f"users:activity!user={{spawner.user.name}}",
    f"access:servers!server={{spawner.user.name}}/{{spawner.name}}",
    *([{decide!r}] if spawner.name == {any!r} else []),
]
c.JupyterHub.services = [
    {{"name": "robot", "api_token": facts["robot"]}},
    {{"name": "admin", "api_token": facts["admin"]}},
    {{"name": "culler", "api_token": facts["culler"]}},
]
c.JupyterHub.load_roles = [
    {{"name": "robot", "scopes": ["access:servers", {decide!r}], "services": ["robot"]}},
    {{
        "name": "setup",
        "scopes": ["admin:users", "admin:servers", "admin:groups", "tokens", "access:servers", "shares"]
        + [f"{{scope}}!server={owner}/{scoped}" for scope in ({read!r}, {manage!r})],
        "services": ["admin"],
    }},
    {{
        "name": "culler",
        "scopes": ["list:users!user={owner}", "servers!server={owner}/{culled}"],
        "services": ["culler"],
    }},
    {{
        "name": "collaborator",
        "scopes": ["access:servers!user={owner}", {decide!r} + "!server={owner}/{any}"],
        "users": [{collaborator!r}],
    }},
    {{
        "name": "colleague",
        "scopes": ["access:servers!user={owner}"],  # and, as all users, more at servers of their own
        "users": [{colleague!r}],
    }},
    {{"name": "inspector", "scopes": ["access:servers"], "users": [{inspector!r}]}},
]
exec(facts["scopes"])
"""


def documented_scopes() -> str:
    """Return the scopes and roles that the documentation shows."""
    found = (block for block in blocks_of(HOW_TO / "jupyterhub.md") if block.heading == SCOPES)
    return next(block.text for block in found if block.text.startswith("# jupyterhub_config.py"))


def missing() -> str:
    """Return what a Hub needs that is not here; empty if it can be started."""
    if importlib.util.find_spec("jupyterhub") is None:
        return "JupyterHub is not installed: `make install`"
    return "" if PROXY else "`configurable-http-proxy` is not installed: `make install`"


class Hub:
    """A running JupyterHub.

    Parameters
    ----------
    root : Path
        Everything that it keeps is here.
    url : str
        Where people find it, with a slash at the end.
    password : str
        Of every user.
    robot, admin, culler : str
        The tokens of a service that may use all servers, of the one that sets things up, and of the one that stops
        servers which are idle.
    process : Popen
        The Hub.
    """

    def __init__(
        self,
        root: Path,
        url: str,
        *,
        password: str,
        robot: str,
        admin: str,
        culler: str,
        process: subprocess.Popen[bytes],
    ) -> None:
        self.root = root
        self.url = url
        self.password = password
        self.robot = robot
        self.admin = admin
        self.culler = culler
        self.process = process

    @property
    def proxy_file(self) -> Path:
        """Where the process of the proxy is written that the Hub started last."""
        return self.root / "jupyterhub-proxy.pid"

    def server(self, name: str = "") -> str:
        """Return the URL of one of the owner's servers."""
        return f"{self.url}user/{OWNER}/{f'{name}/' if name else ''}"

    def ask(self, path: str, body: Any = None, *, token: str, method: str | None = None) -> tuple[int, Any]:
        """Ask by HTTP with a token; return the status and the answer."""
        headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
        return answered(urllib.request.build_opener(), path, body, headers=headers, method=method)

    def api(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Ask the Hub's REST API as the service that sets things up."""
        try:
            code, answer = self.ask(f"{self.url}hub/api/{path}", body, token=self.admin, method=method)
        except TimeoutError:
            raise RuntimeError(f"the Hub did not answer; its log ends:\n{self.log()[-8000:]}") from None
        assert code < 300, (path, code, answer)
        return answer

    def token_of(self, user: str, **more: Any) -> str:
        """Return a new API token of a user."""
        token: str = self.api(f"users/{user}/tokens", more)["token"]
        return token

    def start_servers(self, *names: str) -> None:
        """Start servers of the owner's, and wait until they answer."""
        paths = [f"users/{OWNER}/servers/{name}" if name else f"users/{OWNER}/server" for name in names]
        for path in paths:
            self.api(path, {})
        for path in paths:
            request = urllib.request.Request(
                f"{self.url}hub/api/{path}/progress", headers={"Authorization": f"token {self.admin}"}
            )
            with urllib.request.urlopen(request, timeout=TIMEOUT) as progress:
                told = progress.read().decode()  # it ends when the server is ready, or failed
            assert '"ready": true' in told, told

    def stop_server(self) -> None:
        """Stop the owner's default server, and wait until it has ended."""
        self.api(f"users/{OWNER}/server", method="DELETE")

    def new_request(self, server: str = "") -> Any:
        """Let a program ask to add an MCP server, and return the request, which waits."""
        body = {"name": f"s{secrets.token_hex(4)}", "configuration": {"command": "/bin/false"}}
        code, request = self.ask(f"{self.server(server)}{API}registrations", body, token=self.token_of(OWNER))
        assert code == 202, request
        return request

    def withdraw_requests(self) -> None:
        """Withdraw all requests that wait at the servers that run."""
        for server in ("", ANY, SCOPED):
            base = f"{self.server(server)}{API}"
            code, page = self.ask(f"{base}approvals?status=pending", token=self.admin)
            for request in page["approvals"] if code == 200 else ():
                self.ask(f"{base}registrations/{request['id']}", token=self.admin, method="DELETE")

    def read(self, request: Any, server: str = "") -> Any:
        """Return how a request stands."""
        return self.ask(f"{self.server(server)}{API}approvals/{request['id']}", token=self.admin)[1]

    def decision(self, request: Any, server: str = "") -> tuple[str, Any]:
        """Return where a decision on a request goes, and what it says."""
        url = f"{self.server(server)}{API}approvals/{request['id']}/decision"
        return url, {"decision": "reject_once", "digest": request["call"]["digest"]}

    @contextmanager
    def kernel(self, name: str = "python3", server: str = "") -> Iterator[BlockingKernelClient]:
        """Start a kernel at one of the owner's servers."""
        home, token = self.root / "homes" / OWNER, self.token_of(OWNER)
        (home / "project").mkdir(exist_ok=True)
        notebook = f"project/{secrets.token_hex(4)}.ipynb"
        body = {"path": notebook, "type": "notebook", "name": notebook, "kernel": {"name": name}}
        code, session = self.ask(f"{self.server(server)}api/sessions", body, token=token)
        assert code == 201, session
        runtime = home / ".local" / "share" / "jupyter" / "runtime"
        client = BlockingKernelClient(connection_file=str(runtime / f"kernel-{session['kernel']['id']}.json"))
        client.load_connection_file()
        client.start_channels(hb=False)
        try:
            client.wait_for_ready(timeout=TIMEOUT)
            yield client
        finally:
            client.stop_channels()
            client.context.destroy(linger=0)
            self.ask(f"{self.server(server)}api/sessions/{session['id']}", token=token, method="DELETE")

    def log(self) -> str:
        """Return what the Hub and the servers logged."""
        return (self.root / "hub.log").read_text("utf-8", "replace")


class Place(Protocol):
    """A Hub at which users log in."""

    @property
    def url(self) -> str:
        """Where people find it, with a slash at the end."""
        ...

    @property
    def password(self) -> str:
        """Of every user."""
        ...


class Session:
    """A login session as a browser has it: cookies, and no token in a header.

    Parameters
    ----------
    hub : Place
        Where the user logs in.
    user : str
        Who.
    """

    def __init__(self, hub: Place, user: str) -> None:
        self._hub = hub
        self.jar = CookieJar()
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))
        login = f"{hub.url}hub/login"
        self._browser.open(login, timeout=TIMEOUT).close()
        form = {
            "username": user,
            "password": hub.password,
            "_xsrf": self._xsrf(f"{urllib.parse.urlsplit(hub.url).path}hub/"),
        }
        self._browser.open(login, urllib.parse.urlencode(form).encode(), timeout=TIMEOUT).close()

    def open_lab(self, url: str) -> str:
        """Open JupyterLab at a server, by way of the login at the Hub; return the token that the page has."""
        with self._browser.open(f"{url}lab", timeout=TIMEOUT) as page:
            text, address = page.read().decode(), page.url
        if "oauth2/authorize" in address:  # it is not their own server: the Hub asks whether it may know who they are
            inputs = [dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in re.findall(r"<input[^>]*>", text)]
            form = [(found["name"], html.unescape(found["value"])) for found in inputs if {"name", "value"} <= {*found}]
            with self._browser.open(address, urllib.parse.urlencode(form).encode(), timeout=TIMEOUT) as page:
                text = page.read().decode()
        config = re.search(r'"token": "(\w+)"', text)
        assert config is not None, "no JupyterLab came"
        return config[1]

    def ask(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None, *, method: str | None = None
    ) -> tuple[int, Any]:
        """Ask a server as a script in its page does."""
        xsrf = self._xsrf(urllib.parse.urlsplit(path).path.partition("jupyter-agentbox")[0])
        sent = {"Content-Type": "application/json", "X-XSRFToken": xsrf, **(headers or {})}
        return answered(self._browser, path, body, headers=sent, method=method)

    def _xsrf(self, path: str) -> str:
        return next((cookie.value or "" for cookie in self.jar if (cookie.name, cookie.path) == ("_xsrf", path)), "")


@contextmanager
def mcp_server(hub: Hub, name: str, entry: Mapping[str, Any]) -> Iterator[None]:
    """Let the owner add an MCP server as in the panel, and take it away."""
    owner = Session(hub, OWNER)
    owner.open_lab(hub.server())
    url = f"{hub.server()}{API}servers/{name}"
    code, preview = owner.ask(f"{url}/preview", {"configuration": entry})
    assert code == 200, preview
    code, added = owner.ask(url, {"configuration": entry, "revision": preview["revision"]}, method="PUT")
    assert code == 201, added
    yield
    Path(added["file"]).unlink()


def answered(
    opener: urllib.request.OpenerDirector,
    url: str,
    body: Any = None,
    *,
    headers: Mapping[str, str],
    method: str | None = None,
) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=dict(headers), method=method)
    try:
        with opener.open(request, timeout=TIMEOUT) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text.startswith(b"{") else text.decode()


@contextmanager
def running_hub(root: Path, ports: Sequence[int]) -> Iterator[Hub]:
    """Start a Hub at three ports, its users and the owner's two servers; end all of it."""
    assert PROXY
    public, hub_port, proxy_api = ports
    url = f"http://127.0.0.1:{public}{PREFIX}"
    password, robot, admin, culler = (secrets.token_hex(16) for _ in range(4))
    facts = {
        "url": url,
        "hub_port": hub_port,
        "proxy": PROXY,
        "proxy_api": f"http://127.0.0.1:{proxy_api}",
        "password": password,
        "robot": robot,
        "admin": admin,
        "culler": culler,
        "crypt_key": secrets.token_hex(32),
        "homes": str(root / "homes"),
        "lab_settings": str(root / "lab-settings"),
        "site": str(root / "site"),
        "launch": LAUNCH,
        "scopes": documented_scopes(),
        "environment": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    }
    (root / "homes").mkdir()
    (root / "site").mkdir(mode=0o755)
    (root / "lab-settings").mkdir()
    # JupyterLab's own notifications lie over the panel, whose buttons are disabled while they do.
    (root / "lab-settings" / "overrides.json").write_text(json.dumps(SETTINGS))
    names = {"any": ANY, "owner": OWNER, "collaborator": COLLABORATOR, "colleague": COLLEAGUE, "decide": DECIDE}
    names |= {"inspector": INSPECTOR, "scoped": SCOPED, "read": READ, "manage": MANAGE}
    config = CONFIG.format(facts=json.dumps(facts), timeout=TIMEOUT, culled=CULLED, idle=IDLE, waits=WAITS, **names)
    (root / "jupyterhub_config.py").write_text(config)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "XDG", "CONFIGPROXY"))}
    with subprocess.Popen(
        [sys.executable, "-m", "jupyterhub", "-f", "jupyterhub_config.py"],
        cwd=root,
        env={**kept, "HOME": str(root), "CONFIGPROXY_AUTH_TOKEN": secrets.token_hex(16)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        hub = Hub(root, url, password=password, robot=robot, admin=admin, culler=culler, process=process)
        try:
            _await_start(hub)
            for user in (OWNER, STRANGER):  # the others have roles, and so are there
                hub.api(f"users/{user}", {})
            hub.start_servers("", ANY)
            yield hub
        finally:
            process.terminate()  # the Hub ends its servers and the proxy
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            finally:
                _end_left_proxy(hub)


def _end_left_proxy(hub: Hub) -> None:
    """End the proxy that a Hub leaves which had to start it again: then it does so once more while it ends."""
    if hub.proxy_file.exists():
        os.kill(int(hub.proxy_file.read_text()), signal.SIGTERM)


def _await_start(hub: Hub) -> None:
    """Wait until the Hub says that it runs, and go on writing down what it says."""
    runs: Future[None] = Future()

    def read() -> None:
        assert hub.process.stdout is not None
        with (hub.root / "hub.log").open("wb") as log:
            for line in hub.process.stdout:
                log.write(line)
                log.flush()
                if b"JupyterHub is now running" in line:
                    runs.set_result(None)
        if not runs.done():
            runs.set_exception(RuntimeError(hub.log()))

    threading.Thread(target=read, daemon=True).start()
    runs.result(TIMEOUT)


@contextmanager
def frozen_server(home: Path) -> Iterator[None]:
    """Freeze the default server of the user who has a home, and let it go on."""
    with frozen(pid_of_server(home)):
        yield


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Freeze a process, and let it go on."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def pid_of_server(home: Path) -> int:
    """Return the process of the default server of the user who has a home."""
    (pid,) = (
        int(process.name)
        for process in Path("/proc").iterdir()
        if process.name.isdecimal()
        and f"HOME={home}\0" in (environ := told(process / "environ"))
        and "JUPYTERHUB_SERVER_NAME=\0" in environ
        and "jupyterhub" in told(process / "cmdline")
    )
    return pid


def told(path: Path) -> str:
    """Return what /proc tells of a process; empty if it has ended."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


@contextmanager
def kept_ports(count: int) -> Iterator[list[int]]:
    """Keep some ports for the programs that will listen there."""
    with ExitStack() as stack:
        yield [stack.enter_context(kept_port()) for _ in range(count)]


def run(client: BlockingKernelClient, code: str) -> str:
    """Run code in a kernel, and return what it prints and the traceback of its error."""
    said: list[str] = []

    def hear(message: Any) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            said.append(content["text"])
        elif message["msg_type"] == "error":
            said.extend(content["traceback"])

    client.execute_interactive(code, timeout=TIMEOUT, output_hook=hear, allow_stdin=False)
    return "".join(said)
