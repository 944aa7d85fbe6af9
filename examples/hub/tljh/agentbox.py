"""For /opt/tljh/config/jupyterhub_config.d: the Hub service of jupyter_agentbox, which systemd runs."""

from pathlib import Path

c = get_config()  # noqa: F821  # JupyterHub defines it

# The file belongs to root, with mode 600, and has one line: JUPYTERHUB_API_TOKEN=…
token = Path("/etc/agentbox/service.env").read_text("ascii").strip().removeprefix("JUPYTERHUB_API_TOKEN=")

c.Spawner.disable_user_config = True
c.JupyterHub.public_url = "https://hub.example.org/"
# Added, not set: The Littlest JupyterHub has a service and a role of its own, which stop idle servers.
c.JupyterHub.services.append(
    {"name": "agentbox", "url": "http://127.0.0.1:8090", "api_token": token, "oauth_no_confirm": True}
)
access = "access:services!service=agentbox"
c.JupyterHub.load_roles.extend(
    [
        {"name": "user", "scopes": ["self", access]},
        {"name": "server", "scopes": ["users:activity!user", "access:servers!server", access]},
        # so that the service notices groups in which nobody can approve
        {"name": "agentbox-groups", "scopes": ["read:groups"], "services": ["agentbox"]},
    ]
)
c.JupyterHub.load_groups = {"data-stewards": {"users": ["bob", "cleo"]}}
