"""A Hub that is set up from the documentation alone, with PostgreSQL and real users of the system."""

from __future__ import annotations

from .documented import Site, commands
from .hub import Session
from .test_service import SERVICE, Browser, start_server, until

TOOLS = "from jupyter_agentbox import tools\n"
ADAS = "user/ada/jupyter-agentbox/"


def test_a_call_runs_when_two_others_have_approved_it(site: Site) -> None:
    before = len(site.outside.called)
    with site.kernel("ada") as kernel:
        assert "list_tables for ada" in kernel.run(f"{TOOLS}print(tools.warehouse.list_tables())")
        assert "ask the data team" in kernel.run("tools.warehouse.drop_table()")
        running = kernel.start("print(tools.warehouse.query(sql='select 1'))")
        (request,) = until(lambda: site.pending("bob"))
        ada, bob, cleo = (Browser(site, user) for user in ("ada", "bob", "cleo"))
        own = ada.decide(request)
        first = bob.decide(request)
        waits = site.pending("cleo")
        second = cleo.decide(request)
        assert "query for ada" in kernel.result(running)

    assert (own[0], own[1]["reason"]) == (403, "not_an_approver")
    assert (first[0], first[1]["status"], [one["id"] for one in waits]) == (200, "pending", [request["id"]])
    assert (second[0], second[1]["status"]) == (200, "approved")
    for_ada = ("ada", "Bearer warehouse-secret")
    assert site.outside.called[before:] == [("list_tables", {}, *for_ada), ("query", {"sql": "select 1"}, *for_ada)]
    code, table = site.read(f"{SERVICE}api/audit?tool=query&format=csv", "dan")
    assert (code, "bob" in table, "cleo" in table) == (200, True, True)
    assert site.read(f"{SERVICE}api/audit", "ada")[0] == 403
    database = "postgresql+psycopg://agentbox@/agentbox"
    assert site.machine.run(f"sudo -u agentbox jupyter agentbox audit verify --database {database}")[:7] == "Intact:"


def test_what_users_servers_record_arrives_at_both_places_that_the_pages_name(site: Site) -> None:
    with site.kernel("ada") as kernel:
        kernel.run(f"{TOOLS}tools.warehouse.list_tables()")
    (record,) = site.api("user/ada/jupyter-agentbox/audit?limit=1", token=site.token_of("ada"))["records"]

    until(lambda: record["id"] in site.read(f"{SERVICE}api/reports?user=ada", "dan")[1])
    assert any(record["id"] in body for _, body in site.outside.records)
    assert {token for token, _ in site.outside.records} == {"Bearer collector-secret"}


def test_who_has_the_scope_decides_at_a_users_server_and_nobody_else_does(site: Site) -> None:
    start_server(site, "ada")
    body = {"name": "git", "configuration": {"command": "/opt/mcp/bin/mcp-server-git"}}
    for user in ("ada", "bob"):
        code, request = site.ask(f"{ADAS}registrations", body, token=site.token_of("ada"))
        assert code == 202, request
        path, decision = f"{ADAS}approvals/{request['id']}/decision", {"decision": "reject_once"}
        decision["digest"] = request["call"]["digest"]
        assert [site.ask(path, decision, token=site.token_of(other))[0] for other in ("ada", "bob", "dan")] == [403] * 3
        session = Session(site, user)
        session.open_lab(f"{site.url}user/ada/")
        code, answer = session.ask(f"{site.url}{path}", decision)
        assert (code, answer["decision"]["reviewer"], answer["decision"]["via"]) == (200, user, "browser")


def test_the_check_that_the_page_shows_finds_no_problem_in_what_the_pages_set_up(site: Site) -> None:
    start_server(site, "ada")
    _kernel, check = commands("jupyterhub")
    done = site.machine.attempt(check.commands())
    assert (done.returncode, "PROBLEM" in done.stdout) == (0, False), done.stdout
    assert f"{site.url}user/ada/" in done.stdout, done.stdout


def test_a_users_kernel_names_the_address_at_which_people_find_the_server(site: Site) -> None:
    with site.kernel("ada") as kernel:
        said = kernel.run("%agentbox")

    assert f"{site.url}user/ada/" in said


def test_a_backup_that_was_made_as_the_page_says_can_be_restored_and_its_record_verified(site: Site) -> None:
    with site.kernel("ada") as kernel:
        kernel.run(f"{TOOLS}tools.warehouse.list_tables()")
    *_, backup, restore = commands("hub-service")
    site.machine.run(backup.commands())
    assert site.machine.run("stat --format=%a /var/lib/agentbox-backup").strip() == "700", "it has everybody's record"
    said = site.machine.run(restore.commands())
    assert said.startswith("Intact:")
    change = "UPDATE agentbox_approvals SET status = 'rejected'"
    site.machine.run(f'sudo -u postgres psql --quiet --command="{change}" restored')
    done = site.machine.attempt(restore.commands().splitlines()[-1])
    site.machine.run("sudo -u postgres dropdb --force restored")
    assert (done.returncode, "Intact:" in done.stdout) == (1, False), done.stdout
