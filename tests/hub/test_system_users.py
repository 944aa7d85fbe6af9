"""Users of the system at a Hub that runs as root: what each can read of what others and the service have."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from .documented import Site
from .test_service import SERVICE

#: Where the Hub, the service, the database and the users' servers keep files, and what tells of their processes.
PLACES = "/etc /home /opt/site /run /var/lib /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
ARGUMENT = "planted-in-an-argument"


def where(site: Site, texts: Sequence[str], user: str) -> set[str]:
    """Return the files in which a user can read one of some texts."""
    done = site.machine.attempt(f"grep -rlsFf - {PLACES}", user, "\n".join(texts))
    return {*done.stdout.split()}


@pytest.mark.parametrize(
    "other",
    ["bob", "dan"],  # one who decides for the user, and one who does not
)
def test_another_user_reads_no_arguments_and_no_credential_of_a_users_server(site: Site, other: str) -> None:
    with site.kernel("ada") as kernel:
        kernel.run(f"from jupyter_agentbox import tools\ntools.warehouse.list_tables(like={ARGUMENT!r})")
        token = site.machine.run(
            "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | sed -n s/^JUPYTERHUB_API_TOKEN=//p", "ada"
        )
        texts = [ARGUMENT, *token.split()]
        own, read = where(site, texts, "ada"), where(site, texts, other)
        left = site.machine.run("find /tmp -user ada -type f -readable 2>/dev/null || true", other)

    assert "/home/ada/.local/share/jupyter/agentbox/approvals.sqlite" in own
    assert any(path.endswith("/environ") for path in own)
    assert (read, left) == (set(), "")


def test_users_read_no_credential_of_the_hub_the_service_or_the_database(site: Site) -> None:
    paths = [
        "/run/secrets/warehouse-token",
        "/etc/jupyterhub/agentbox-token",
        "/var/lib/agentbox/agentbox_hub_policy_key",
    ]
    files = {path: site.machine.run(f"cat {path}").strip() for path in paths}
    texts = [line for text in files.values() for line in text.splitlines() if "PRIVATE KEY" not in line]
    texts += [site.admin, site.password]
    there = where(site, texts, "")
    assert {*paths, "/etc/jupyterhub/jupyterhub_config.py"} <= there
    assert any(path.endswith("/environ") for path in there)

    for user in ("ada", "bob"):
        assert where(site, texts, user) == set()
        database = site.machine.attempt(
            "psql --dbname=agentbox --host=/run/postgresql --command='TABLE agentbox_approvals'", user
        )
        assert database.returncode != 0
        assert f'role "{user}" does not exist' in database.stdout


def test_a_kernel_of_a_real_user_has_no_credential_and_cannot_read_the_servers(site: Site) -> None:
    code = """
import glob, os
found = [name for name in os.environ if "JUPYTERHUB" in name or "TOKEN" in name]
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        found += [path] if "JUPYTERHUB_API_TOKEN" in open(path).read() else []
    except OSError:
        pass
print(found, os.getuid())
"""
    with site.kernel("ada") as kernel:
        said = kernel.run(code)

    assert said == f"[] {site.machine.run('id -u ada').strip()}\n"


def test_no_user_decides_or_reads_for_another_with_what_they_have(site: Site) -> None:
    with site.kernel("ada") as kernel:
        kernel.run(f"from jupyter_agentbox import tools\ntools.warehouse.list_tables(like={ARGUMENT!r})")
    for path in ("approvals", "audit", "policy"):
        assert site.read(f"user/ada/jupyter-agentbox/{path}", "dan")[0] == 403
    code, text = site.read(f"{SERVICE}api/requests", "bob")
    assert (code, json.loads(text)["own"], ARGUMENT in text) == (200, [], False)
