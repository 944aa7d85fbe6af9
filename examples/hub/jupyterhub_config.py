"""A JupyterHub on one machine, with the service of jupyter_agentbox: `make demo-hub` starts it, to try it.

It keeps everything in the directory that it is started in. It is no example of a safe Hub: all servers run as one
user of the machine, and everybody has the same password.
"""

import json
import os
import secrets
import shutil
import sys
from pathlib import Path

c = get_config()  # noqa: F821  # JupyterHub defines it

here, root = Path(__file__).resolve().parent, Path.cwd()
public, hub, proxy, service = (int(port) for port in os.environ.get("DEMO_HUB_PORTS", "8000 8081 8001 8090").split())
password = os.environ.get("DEMO_HUB_PASSWORD") or secrets.token_urlsafe(9)
url = f"http://127.0.0.1:{public}/"

c.JupyterHub.bind_url = url
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = hub
c.JupyterHub.db_url = "sqlite:///hub.sqlite"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.command = [os.environ.get("DEMO_HUB_PROXY") or shutil.which("configurable-http-proxy")]

c.JupyterHub.log_level = "WARN"  # so that what is printed below is still in sight once all runs

c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = password
c.Authenticator.allowed_users = {"ada", "bob"}
c.JupyterHub.load_groups = {"shop-keepers": {"users": ["bob"]}, "auditors": {"users": ["bob"]}}

# The servers of users: they know the shop only by the address of the service, and call it with their own token.
entry = {
    "url": f"{url}services/agentbox/mcp/shop",
    "headers": {"Authorization": "Bearer ${JUPYTERHUB_API_TOKEN}"},
    "timeout": 3900,  # longer than a request waits for its approvers
}
(root / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
# The service asks; asking here as well would only be a second click.
(root / "rules.json").write_text(json.dumps({"rules": [{"effect": "allow", "server": "shop", "tool": "*"}]}))
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = f"{root}/homes/{{username}}"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.notebook_dir = "~"
c.Spawner.args = [
    f"--AgentBoxApp.mcp_config_path={root}/mcp.json",
    f"--AgentBoxApp.rules_path={root}/rules.json",
    f"--AgentBoxApp.hub_service_url={url}services/agentbox/",
    *(["--allow-root"] if os.geteuid() == 0 else []),
]

c.JupyterHub.services = [
    {
        "name": "agentbox",
        "url": f"http://127.0.0.1:{service}",
        "command": [
            str(Path(sys.executable).with_name("jupyter-agentbox")),
            "hub",
            f"--policy={here}/policy.json",
            f"--HubService.public_url={url}services/agentbox/",
        ],
        "cwd": str(root),
        "oauth_no_confirm": True,
    }
]
# Who may use the service: all users in their browsers, and their servers with the token that the Hub gave these.
access = "access:services!service=agentbox"
c.JupyterHub.load_roles = [
    {"name": "user", "scopes": ["self", access]},
    {"name": "server", "scopes": ["users:activity!user", "access:servers!server", access]},
    {"name": "agentbox-groups", "scopes": ["read:groups"], "services": ["agentbox"]},
]
if token := os.environ.get("DEMO_HUB_ADMIN_TOKEN"):  # for tests
    c.JupyterHub.services.append({"name": "setup", "api_token": token})
    scopes = ["admin:users", "admin:servers", "tokens", "access:servers"]
    c.JupyterHub.load_roles.append({"name": "setup", "scopes": scopes, "services": ["setup"]})

# On the login page. The password is not there: other users of this machine may open that page, too.
c.JupyterHub.template_vars = {
    "announcement_login": (
        f"""
<p>Log in as <code>ada</code>, and in another browser (or a private window) as <code>bob</code>.
The terminal in which this Hub was started shows the password of both.</p>
<p>ada: open a notebook, and run
<code>from jupyter_agentbox import tools; tools.shop.delete_order(order_id=1210)</code>.
It waits for a keeper of the shop.</p>
<p>bob: start your server, too. What waits for you is in the panel at the right, and on
<a href="{url}services/agentbox/">the page of the Hub service</a>.</p>
"""
    )
}

sys.stderr.write(
    f"""
Log in at {url} as `ada`, in another browser (or a private window) as `bob`; the password of both is {password}
  ada: start your server, open a notebook, and run
         from jupyter_agentbox import tools
         tools.shop.list_orders()      # allowed
         tools.shop.delete_order(order_id=1210)   # waits for a keeper of the shop
  bob: start your server, too; what waits for you is in the panel at the right, and at {url}services/agentbox/
Ctrl-C ends it. Everything is in {root}.

"""
)
