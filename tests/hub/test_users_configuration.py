"""What users write into files of their own against the site, with and without `disable_user_config`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .documented import CONFIGURES, Site
from .test_service import start_server

ALLOW = {"rules": [{"effect": "allow", "server": "*", "tool": "*"}]}
#: What the files do: other rules, in three places, and other settings for where rules are.
FILES = """
mkdir -p .jupyter loose
echo '{allow}' | tee .jupyter/agentbox_rules.json > loose/agentbox_rules.json
cp /etc/jupyter/agentbox_mcp.json .jupyter/
echo 'export JUPYTER_CONFIG_PATH={home}/loose JUPYTER_AGENTBOX_GRANTS=user-choice' | tee .profile > .bash_profile
cat > .jupyter/jupyter_server_config.py <<'END'
import os
os.environ["JUPYTER_CONFIG_PATH"] = "{home}/loose"
c.AgentBoxApp.rules_path = "{home}/loose/agentbox_rules.json"
c.AgentBoxApp.audit_sinks = []
c.AgentBoxApp.audit_arguments = "full"
c.AgentBoxApp.secret_names = []
END
"""
#: Where Jupyter looks for a user's kernelspecs before it looks for those of the site.
KERNELS = ".local/share/jupyter/kernels"
CALLS = {"git.push": "ask", "git.log": "allow", "warehouse.query": "allow"}


SITES_KERNEL = "/opt/site/share/jupyter/kernels/agentbox-sandbox/kernel.json"


def own_kernelspecs(site: Site) -> dict[str, Any]:
    """Return kernelspecs of a user's: as loose as the user likes, also with the site's name, and of another program."""
    spec = json.loads(site.machine.run(f"cat {SITES_KERNEL}"))
    loose = json.loads(json.dumps(spec))
    loose["env"] = {"OWN_KERNELSPEC": "1"}
    loose["metadata"]["kernel_provisioner"]["config"] = {"environment": ["*", "JUPYTERHUB_API_TOKEN"]}
    other = {**spec, "argv": ["sh", "-c", "touch ~/started; env > ~/started"]}
    return {"agentbox-sandbox": loose, "loose": loose, "other": other, "plain": {**other, "metadata": {}}}


@pytest.fixture(scope="module", params=["cleo", CONFIGURES])
def user(site: Site, request: pytest.FixtureRequest) -> Iterator[str]:
    """A user who has written such files, without and with a server that reads a user's configuration."""
    name, home = request.param, f"/home/{request.param}"
    site.stop_servers(name)
    site.machine.run(FILES.format(allow=json.dumps(ALLOW), home=home), name, home=True)
    for kernel, spec in own_kernelspecs(site).items():
        place = f"{KERNELS}/{kernel}"
        text = json.dumps(spec)
        site.machine.run(f"mkdir -p {place}\ncat > {place}/kernel.json <<'END'\n{text}\nEND", name, home=True)
    start_server(site, name)
    yield name
    site.stop_servers(name)
    site.machine.run(f"rm -r .jupyter loose .bash_profile {KERNELS} && cp /etc/skel/.profile .", name, home=True)


def test_no_file_of_a_user_loosens_a_rule_of_the_site_whether_their_configuration_is_read_or_not(
    site: Site, user: str
) -> None:
    token, server = site.token_of(user), f"user/{user}/jupyter-agentbox/"

    def effects() -> dict[str, Any]:
        found = {}
        for call in CALLS:
            name, _, tool = call.partition(".")
            found[call] = site.api(f"{server}policy/evaluate", {"server": name, "tool": tool}, token=token)["effect"]
        return found

    policy = site.api(f"{server}policy", token=token)
    assert effects() == CALLS
    assert policy["file"].startswith(f"/home/{user}/{'loose' if user == CONFIGURES else '.jupyter'}")
    assert policy["features"]["grants"]["lock"] == "force-off"
    assert policy["hub_policy"]["problem"] is None
    code, _ = site.ask(f"{server}policy", ALLOW, token=token, method="PUT")
    assert code == 403  # a token is no person
    assert effects() == CALLS


def test_the_records_of_a_user_go_where_the_site_says_whether_their_configuration_is_read_or_not(
    site: Site, user: str
) -> None:
    before = len(site.outside.records)
    with site.kernel(user) as kernel:
        said = kernel.run("from jupyter_agentbox import tools\nprint(tools.warehouse.list_tables())")

    assert f"list_tables for {user}" in said
    assert any(f'"{user}"' in body for _, body in site.outside.records[before:])


def test_no_kernelspec_of_a_user_is_listed_or_started_whether_their_configuration_is_read_or_not(
    site: Site, user: str
) -> None:
    token, api = site.token_of(user), f"user/{user}/api/"

    listed = site.api(f"{api}kernelspecs", token=token)["kernelspecs"]
    refused = {name: site.ask(f"{api}kernels", {"name": name}, token=token)[0] for name in ("loose", "other", "plain")}

    assert [*listed] == ["agentbox-sandbox"]
    assert "OWN_KERNELSPEC" not in listed["agentbox-sandbox"]["spec"]["env"]
    assert refused == {"loose": 404, "other": 404, "plain": 404}
    assert site.machine.run("ls", user, home=True).count("started") == 0


def test_a_kernelspec_of_a_user_with_the_name_of_the_sites_starts_the_sites(site: Site, user: str) -> None:
    with site.kernel(user) as kernel:
        found = kernel.run("import os; print(*sorted(os.environ))").split()

    assert "PATH" in found
    assert [name for name in found if name == "OWN_KERNELSPEC" or "JUPYTERHUB" in name or "TOKEN" in name] == []


def test_the_records_for_the_site_have_no_secret_of_a_user_to_whom_nothing_is_one(site: Site, user: str) -> None:
    before, secret = len(site.outside.records), f"hunter2-of-{user}"
    with site.kernel(user) as kernel:
        said = kernel.run(
            f"from jupyter_agentbox import tools\nprint(tools.warehouse.list_tables(password={secret!r}))"
        )
    site.stop_servers(user)  # which sends what is left, also to the Hub service

    assert f"list_tables for {user}" in said
    assert site.outside.called[-1][1] == {"password": secret}
    sent = "".join(body for _, body in site.outside.records[before:])
    assert (f'"{user}"' in sent, "[redacted]" in sent, secret in sent) == (True, True, False)
    status, reported = site.read(f"services/agentbox/api/reports?user={user}", "dan")
    assert (status, "[redacted]" in reported, secret in reported) == (200, True, False)


RULES = "/etc/jupyter/agentbox_rules.json"


def test_a_change_of_the_sites_rules_counts_at_the_next_call_and_all_is_denied_while_they_cannot_be_trusted(
    site: Site,
) -> None:
    text = site.machine.run(f"cat {RULES}")
    rules = json.loads(text)
    stricter = {"effect": "deny", "server": "warehouse", "tool": "list_tables", "reason": "closed for the audit"}

    def problems() -> list[str]:
        policy = site.api("user/ada/jupyter-agentbox/policy", token=site.token_of("ada"))
        return [problem["message"] for problem in policy["problems"]]

    with site.kernel("ada") as kernel:

        def calls(number: int) -> str:
            before = len(site.outside.called)
            said = kernel.run("from jupyter_agentbox import tools\nprint(tools.warehouse.list_tables())")
            assert len(site.outside.called) == before + number, said
            return said

        calls(1)
        assert problems() == []
        try:
            site.machine.run(f"chmod 666 {RULES}")
            assert "everything is denied: the user of this server can write" in calls(0)
            assert any("can write" in problem for problem in problems())
            site.machine.write(RULES, text[:-1])
            assert "everything is denied: expected `,` or `}`" in calls(0)
            assert problems() == ["expected `,` or `}`"]
            site.machine.write(RULES, json.dumps({**rules, "rules": [stricter, *rules["rules"]]}))
            assert "closed for the audit" in calls(0)
            assert problems() == []
        finally:
            site.machine.write(RULES, text)
        calls(1)
