"""A Hub that is set up as the documentation says, on a machine of its own with users of its own."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.ports import FRESH_PORTS
from tests.postgresql import programs

from .code_blocks import HOW_TO, Block, blocks_of
from .hub import PROXY, ROOT, SCOPES, TIMEOUT, kept_ports
from .machine import Machine, running_machine
from .outside import Outside, running_outside
from .test_service import DemoHub, is_up, start_server, until
from .web_kernel import WebKernel, running_web_kernel

PAGES = {name: HOW_TO / f"{name}.md" for name in ("jupyterhub", "hub-service")}
REFERENCE = ROOT / "docs" / "reference"
#: Who the pages name: who asks, two who approve, and an auditor.
USERS = ("ada", "bob", "cleo", "dan")
#: The one whose servers read the user's own configuration, too, which the pages advise against.
CONFIGURES = "dan"
#: The headings of what this Hub does not have, and why.
LEFT_OUT = {
    SCOPES: "has another role `user` than the Hub service: `test_principals.py`",
    "Credentials": "for a site whose libraries need the token of the Hub",
    "Tools that act as the user": "needs a provider: `test_sign_in.py`",
    "Send the record to rsyslog": "needs another machine; on this one: `audit_sinks/test_rsyslog.py`",
}

#: What an administrator has before they read these pages, with a service and a role of their own.
BEFORE = """
import os
c.JupyterHub.bind_url = {url!r}
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = {password!r}
c.Authenticator.allowed_users = {users!r}
c.Spawner.args = [{fresh_ports!r}]
c.Spawner.environment = {{"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
c.Spawner.start_timeout = c.Spawner.http_timeout = {timeout}
c.JupyterHub.services = [{{"name": "setup", "api_token": {admin!r}}}]
scopes = ["admin:users", "admin:servers", "tokens", "access:servers"]
c.JupyterHub.load_roles = [{{"name": "setup", "scopes": scopes, "services": ["setup"]}}]
c.JupyterHub.load_groups = {{"before": {{"users": ["dan"]}}}}
"""
#: What only the tests need: one user without `disable_user_config`, and the seconds of a busy machine.
AFTER = """
def let_one_user_configure(spawner):
    if spawner.user.name == {own!r}:
        spawner.disable_user_config = False
c.Spawner.pre_spawn_hook = let_one_user_configure
from jupyterhub.services.service import Service
if hasattr(Service, "timeout"):  # JupyterHub 5 has none
    for service in c.JupyterHub.services:
        if "url" in service:
            service["timeout"] = {timeout}
"""


@dataclass(frozen=True)
class Site(DemoHub):
    """The running Hub.

    Parameters
    ----------
    machine : Machine
        Where it runs.
    outside : Outside
        What it reaches elsewhere.
    hubs : list of Popen
        The Hub's processes, one after the other.
    """

    machine: Machine
    outside: Outside
    hubs: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_hub(self) -> None:
        """Start the Hub, once more if it was killed, and wait until the service answers behind it."""
        with (self.root / "hub.log").open("ab") as log:
            process = subprocess.Popen(
                self.machine.command("cd /etc/jupyterhub && exec jupyterhub -f jupyterhub_config.py"),
                env=self.machine.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.hubs.append(process)
        until(lambda: self._starts() == len(self.hubs) and is_up(self), process)

    def _starts(self) -> int:
        """Return how often the Hub has said that it runs: the proxy of one that was killed answers before."""
        return (self.root / "hub.log").read_text("utf-8", "replace").count("JupyterHub is now running")

    def kill_hub(self) -> None:
        """End the Hub's process, and nothing that it has started, as kill -9 does."""
        self.hubs[-1].kill()
        self.hubs[-1].wait(TIMEOUT)

    def read(self, path: str, user: str) -> tuple[int, str]:
        """Read what is not JSON with a token of a user; return the status and the text."""
        request = urllib.request.Request(
            f"{self.url}{path}", headers={"Authorization": f"Bearer {self.token_of(user)}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop_servers(self, *users: str) -> None:
        """Stop users' servers, which send what they have recorded while the service is there to take it."""
        for user in users:
            self.ask(f"hub/api/users/{user}/server", token=self.admin, method="DELETE")
        until(lambda: not any(self.api(f"hub/api/users/{user}")["servers"] for user in users))

    @contextmanager
    def kernel(self, user: str) -> Iterator[WebKernel]:
        """Start a notebook's kernel at a user's server."""
        start_server(self, user)
        token, server = self.token_of(user), f"user/{user}/"
        self.machine.run("mkdir -p project", user, home=True)
        notebook = f"project/{secrets.token_hex(4)}.ipynb"
        session = self.api(
            f"{server}api/sessions", {"path": notebook, "type": "notebook", "name": notebook, "kernel": {}}, token=token
        )
        try:
            with running_web_kernel(f"{self.url}{server}", session["kernel"]["id"], token) as kernel:
                yield kernel
        finally:
            self.api(f"{server}api/sessions/{session['id']}", token=token, method="DELETE")


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page that this Hub has."""
    return [block for block in blocks_of(PAGES[page]) if block.heading not in LEFT_OUT]


def files(page: str) -> dict[str, str]:
    """Return the files of Python that a page shows, put together from the blocks that name them."""
    found: dict[str, str] = {}
    for block in blocks(page):
        if block.language == "python":
            path = re.match(r"# (?:/etc/jupyter/)?(\S+\.py)", block.text)
            assert path, f"no file is named in {block}"
            found[path[1]] = found.get(path[1], "") + block.text + "\n"
    return found


def commands(page: str) -> list[Block]:
    """Return the blocks of a page that show a terminal."""
    return [block for block in blocks(page) if block.language == "console"]


def said(page: str, pattern: str) -> str:
    """Return the code within a page's text that begins with a pattern."""
    found = re.search(rf"`({pattern}[^`]*)`", PAGES[page].read_text("utf-8"))
    assert found, f"{page} does not say `{pattern}…`"
    return found[1]


def policies() -> Iterator[Any]:
    """Return the policy of the reference, without and with its part for users' own tools."""
    shown = [block for block in blocks_of(REFERENCE / "hub-service.md") if block.language == "json"]
    (policy,) = (json.loads(block.text) for block in shown if block.heading == "The policy")
    (local,) = (json.loads(block.text) for block in shown if block.heading == "A policy for users' own tools")
    yield policy
    yield {**policy, "local": local["local"]}


def site_rules(key: str) -> Any:
    """Return the site's rules for users' servers: what three pages say of it."""
    (audit,) = (json.loads(block.text) for block in blocks("jupyterhub") if block.language == "json")
    rules = json.loads(said("hub-service", re.escape('{"rules": [{"effect"')))
    more = json.loads("{" + said("hub-service", re.escape('"audit": {"sinks"')) + "}")
    audit["audit"]["sinks"] += more["audit"]["sinks"]
    shown = (block for block in blocks_of(REFERENCE / "rules.md") if block.heading == "A policy from the Hub service")
    source = json.loads(next(shown).text)["hub_policy"]
    return {**rules, **audit, "rules": rules["rules"], "hub_policy": {**source, "public_key": key}}


def replaced(text: str, elsewhere: Mapping[str, str]) -> str:
    """Return a text with other addresses: those of this Hub."""
    for address, here in elsewhere.items():
        text = text.replace(address, here)
    return text


@contextmanager
def running_site(root: Path) -> Iterator[Site]:
    """Set the Hub up, start it, and end it."""
    with (
        kept_ports(4) as ports,
        running_outside() as outside,
        running_machine(root / "machine") as machine,
        running_database(machine),
    ):
        password, admin = (secrets.token_hex(16) for _ in range(2))
        site = Site(root, f"http://127.0.0.1:{ports[0]}/", password, admin, machine, outside)
        set_up(site, ports)
        site.start_hub()
        try:
            yield site
            site.stop_servers(*USERS)
        finally:
            site.hubs[-1].terminate()
            try:
                site.hubs[-1].wait(TIMEOUT)
            finally:
                machine.kill_all("jupyter")  # what a Hub that was killed has left, and one that does not end


@contextmanager
def running_database(machine: Machine) -> Iterator[None]:
    """Start PostgreSQL as Debian does: a socket in /run/postgresql, at which it knows users by those of the system."""
    directory = programs()
    machine.run("install -d -o postgres /run/postgresql /var/lib/postgresql")
    place = "-D /var/lib/postgresql/data"
    machine.run(f"{directory}/initdb {place} -A peer -E UTF8 --no-sync", "postgres")
    options = "-k /run/postgresql -h '' -c fsync=off"
    machine.run(f'{directory}/pg_ctl {place} -w -l /var/lib/postgresql/log -o "{options}" start', "postgres")
    try:
        yield
    finally:
        machine.run(f"{directory}/pg_ctl {place} -w -m immediate stop", "postgres")


def set_up(site: Site, ports: Sequence[int]) -> None:
    """Do what the pages say, with these addresses."""
    machine = site.machine
    elsewhere = {
        "http://127.0.0.1:8090": f"http://127.0.0.1:{ports[3]}",
        "https://hub.example.org/": site.url,
        "https://warehouse.example.org": site.outside.url,
        "otlp+https://collector.example.org:4318": f"otlp+{site.outside.url}",
    }
    kernel, _check = commands("jupyterhub")
    machine.run(kernel.commands())
    machine.run("".join(f"useradd --create-home {user}\n" for user in USERS))
    machine.run(said("hub-service", "useradd"))
    machine.run(f"mkdir -p /etc/jupyterhub && {said('hub-service', 'openssl')} >/etc/jupyterhub/agentbox-token")
    machine.run("chmod 600 /etc/jupyterhub/agentbox-token")

    first, with_local = policies()
    machine.write("/etc/agentbox/policy.json", replaced(json.dumps(first), elsewhere))
    machine.write("/run/secrets/warehouse-token", "warehouse-secret\n", 0o600)
    machine.run("chown agentbox: /run/secrets/warehouse-token")
    service = files("hub-service")
    machine.write("/etc/agentbox/hub_config.py", replaced(service["/etc/agentbox/hub_config.py"], elsewhere))
    own, check, database, key, _backup, _restore = commands("hub-service")
    machine.run(own.commands())
    found = machine.run(check.commands())
    assert found == check.printed(), found
    machine.run(database.commands())
    machine.write("/etc/agentbox/policy.json", replaced(json.dumps(with_local), elsewhere))
    machine.run(own.commands())
    printed = machine.run(key.commands())

    hub = BEFORE.format(
        url=site.url, hub_port=ports[1], proxy_port=ports[2], proxy=PROXY, password=site.password, admin=site.admin,
        users={*USERS}, fresh_ports=FRESH_PORTS, timeout=TIMEOUT,
    )  # fmt: skip
    hub += (
        files("jupyterhub")["jupyterhub_config.py"]
        + service["jupyterhub_config.py"]
        + AFTER.format(timeout=TIMEOUT, own=CONFIGURES)
    )
    machine.write("/etc/jupyterhub/jupyterhub_config.py", replaced(hub, elsewhere), 0o600)

    servers = files("jupyterhub")["jupyter_server_config.py"] + said("hub-service", "c.AgentBoxApp.hub_service_url")
    machine.write("/etc/jupyter/jupyter_server_config.py", replaced(servers, elsewhere))
    (central,) = (block for block in blocks("hub-service") if block.language == "json")
    machine.write("/etc/jupyter/agentbox_mcp.json", replaced(central.text, elsewhere))
    rules = replaced(json.dumps(site_rules(printed.split()[-1])), elsewhere)
    machine.write("/etc/jupyter/agentbox_rules.json", rules)
    token = json.loads(rules)["audit"]["token_file"]
    machine.write(token, "collector-secret\n")
