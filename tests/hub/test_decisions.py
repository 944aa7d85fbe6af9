"""Who decides at a server of a real JupyterHub: one test for each kind of session and token that it knows."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from .hub import ANY, API, COLLABORATOR, COLLEAGUE, DECIDE, OWNER, STRANGER, Hub, Session, answered, run
from .test_service import until


def user_token(hub: Hub, _server: str) -> str:
    return hub.token_of(OWNER)


def narrow_token(hub: Hub, server: str) -> str:
    here = f"!server={OWNER}/{server}"
    return hub.token_of(OWNER, scopes=[f"access:servers{here}", f"{DECIDE}{here}"])


def token_of_the_page(hub: Hub, server: str) -> str:
    """JupyterLab's page has it, so that a script there can hand it to a kernel."""
    return Session(hub, OWNER).open_lab(hub.server(server))


def token_of_the_server(hub: Hub, server: str) -> str:
    """It is not in the environment of a kernel. A cell finds it in the server's, which is the same user's."""
    with hub.kernel(server=server) as kernel:
        return run(kernel, READ_TOKEN).strip()


READ_TOKEN = """
import os
assert "JUPYTERHUB_API_TOKEN" not in os.environ
entries = open(f"/proc/{os.getppid()}/environ").read().split("\\0")
print(dict(entry.split("=", 1) for entry in entries if "=" in entry)["JUPYTERHUB_API_TOKEN"])
"""


def token_of_a_service(hub: Hub, _server: str) -> str:
    return hub.robot


def token_of_a_collaborator(hub: Hub, _server: str) -> str:
    return hub.token_of(COLLABORATOR)


#: What a program may have -> what the record says of a decision with it, where programs decide.
PROGRAMS: list[tuple[Callable[[Hub, str], str], tuple[str, str, str]]] = [
    (user_token, ("api_token", "user", OWNER)),
    (narrow_token, ("api_token", "user", OWNER)),
    (token_of_the_page, ("api_token", "user", OWNER)),
    (token_of_the_server, ("server_token", "user", OWNER)),
    (token_of_a_service, ("api_token", "service", "robot")),
    (token_of_a_collaborator, ("api_token", "user", COLLABORATOR)),
]
NAMES = [find.__name__ for find, _ in PROGRAMS]


@pytest.mark.parametrize("find", [find for find, _ in PROGRAMS], ids=NAMES)
def test_no_token_decides(hub: Hub, find: Callable[[Hub, str], str]) -> None:
    request = hub.new_request()

    code, answer = hub.ask(*hub.decision(request), token=find(hub, ""))

    is_owners = find not in (token_of_a_service, token_of_a_collaborator)
    assert (code, answer["reason"]) == (403, "needs_person" if is_owners else "not_a_decider")
    assert hub.read(request) == request


@pytest.mark.parametrize(("find", "expected"), PROGRAMS, ids=NAMES)
def test_where_tokens_decide_the_record_says_which_it_was(
    hub: Hub, find: Callable[[Hub, str], str], expected: tuple[str, str, str]
) -> None:
    request = hub.new_request(ANY)

    code, answer = hub.ask(*hub.decision(request, ANY), token=find(hub, ANY))

    assert (code, answer["status"]) == (200, "rejected")
    decision = hub.read(request, ANY)["decision"]
    assert (decision["via"], decision["reviewer_kind"], decision["reviewer"]) == expected
    assert (len(decision["credential"]), decision["hub_server"]) == (64, f"{OWNER}/{ANY}")


def test_a_token_is_called_by_its_note_if_the_hub_tells_it(hub: Hub) -> None:
    for scopes, expected in (([], "nightly run"), ([f"access:servers!server={OWNER}/{ANY}", DECIDE], None)):
        request = hub.new_request(ANY)
        more = {"scopes": [f"{scope}!user={OWNER}" if scope == DECIDE else scope for scope in scopes]} if scopes else {}
        code, _ = hub.ask(*hub.decision(request, ANY), token=hub.token_of(OWNER, note="nightly run", **more))
        assert code == 200
        assert hub.read(request, ANY)["decision"]["token_note"] == expected
        records = hub.ask(f"{hub.server(ANY)}{API}audit?server=agentbox&limit=5", token=hub.admin)[1]["records"]
        words = f"a program with a token of {OWNER}" + (f" (“{expected}”)" if expected else "")
        assert [one["decided_by"] for one in records if one["id"] == request["id"]] == [words]


def test_a_browser_that_is_logged_in_decides(hub: Hub) -> None:
    browser, decided = Session(hub, OWNER), []
    token = browser.open_lab(hub.server())
    for headers in ({}, {"Authorization": f"token {token}"}):  # as JupyterLab sends it, too
        code, answer = browser.ask(*hub.decision(hub.new_request()), headers)
        assert code == 200, answer
        decided.append(answer["decision"])

    for decision in decided:
        assert (decision["via"], decision["reviewer"], decision["hub_server"]) == ("browser", OWNER, f"{OWNER}/")
    assert decided[0]["credential"] == decided[1]["credential"]  # one session
    assert len(decided[0]["credential"]) == 64


def test_a_cookie_with_a_token_that_no_login_gave_is_not_a_person(hub: Hub) -> None:
    """The cookie of one user does not make a person of the token of another."""
    browser = Session(hub, OWNER)
    browser.open_lab(hub.server())
    request = hub.new_request()

    for token in (hub.robot, hub.token_of(COLLABORATOR)):
        code, answer = browser.ask(*hub.decision(request), {"Authorization": f"token {token}"})
        assert (code, answer["reason"]) == (403, "not_a_decider")

    assert hub.read(request) == request


#: What a cell does with the page's token: it signs the cookie that a browser would have, with the secret on the disk.
FORGE_COOKIE = """
import hashlib, hmac, os, pathlib
from jupyter_core.paths import jupyter_runtime_dir
from tornado.web import create_signed_value
name, path = os.environ["JUPYTERHUB_CLIENT_ID"], pathlib.Path(jupyter_runtime_dir(), "jupyter_cookie_secret")
key = path.read_bytes() if path.exists() else b""
secret = hmac.new(key, digestmod=hashlib.sha256).digest()
print(name + "=" + create_signed_value(secret, name, {token!r}).decode())
"""


def test_a_kernel_cannot_make_the_cookie_of_a_browser(hub: Hub) -> None:
    token, request = token_of_the_page(hub, ""), hub.new_request()
    with hub.kernel() as kernel:
        cookie = run(kernel, FORGE_COOKIE.format(token=token)).strip()
    url, body = hub.decision(request)
    headers = {"Authorization": f"token {token}", "Cookie": cookie, "Content-Type": "application/json"}

    code, answer = answered(urllib.request.build_opener(), url, body, headers=headers)

    assert cookie.startswith(f"jupyterhub-user-{OWNER}=2|")
    assert (code, answer["reason"]) == (403, "needs_person")
    assert hub.read(request) == request


def test_who_may_use_a_server_and_not_decide_there_reads_and_changes_nothing(hub: Hub) -> None:
    """Only the owner decides at one server, who has the scope at the other, and it counts for that server only."""
    owner = hub.token_of(OWNER, scopes=[f"access:servers!user={OWNER}"])  # at `ANY`, the owner needs the scope, too
    browsers = {user: Session(hub, user) for user in (COLLABORATOR, COLLEAGUE)}
    for user, server in ((COLLABORATOR, ""), (COLLEAGUE, ""), (COLLEAGUE, ANY)):
        request, browser, base = hub.new_request(server), browsers[user], f"{hub.server(server)}jupyter-agentbox/"
        browser.open_lab(hub.server(server))

        assert browser.ask(f"{base}approvals/{request['id']}") == (200, request)
        url, body = hub.decision(request, server)
        batch = {"decisions": [{"id": request["id"], **body}]}
        tried = [(url, body), (f"{base}approvals/{request['id']}/extend", {}), (f"{base}approvals/decisions", batch)]
        for path, sent in tried:
            code, answer = browser.ask(path, sent)
            assert (code, answer["reason"]) == (403, "not_a_decider"), path
        code, answer = browser.ask(f"{base}policy", {"rules": []}, method="PUT")
        assert (code, answer["reason"]) == (403, "not_a_decider")
        assert hub.read(request, server) == request

    request = hub.new_request(ANY)
    code, answer = hub.ask(*hub.decision(request, ANY), token=owner)
    assert (code, answer["reason"]) == (403, "not_a_decider")
    browsers[COLLABORATOR].open_lab(hub.server(ANY))
    code, answer = browsers[COLLABORATOR].ask(*hub.decision(request, ANY))
    assert (code, answer["decision"]["reviewer"], answer["decision"]["via"]) == (200, COLLABORATOR, "browser")


def test_at_a_server_of_a_user_whose_name_is_an_address_requests_are_decided_in_their_name(hub: Hub) -> None:
    user, path = "j.doe@uni.org", "j.doe@uni.org"
    hub.api(f"users/{path}", {})
    session, server = Session(hub, user), f"{hub.url}user/{path}/"
    hub.api(f"users/{path}/server", {})
    try:
        until(lambda: hub.api(f"users/{path}")["servers"].get("", {}).get("ready"))
        body = {"name": "a", "configuration": {"command": "/bin/false"}}
        code, request = hub.ask(f"{server}{API}registrations", body, token=hub.token_of(user))
        assert code == 202, request
        url, decision = f"{server}{API}approvals/{request['id']}/decision", hub.decision(request)[1]
        session.open_lab(server)
        other = Session(hub, OWNER)
        assert other.ask(url, decision)[0] == 403
        code, answer = session.ask(url, decision)
        found = answer["decision"]
        assert (code, found["reviewer"], found["via"], found["hub_server"]) == (200, user, "browser", f"{user}/")
    finally:
        hub.api(f"users/{path}/server", method="DELETE")


def test_a_server_decides_no_request_of_another_server_of_its_user(hub: Hub) -> None:
    requests = {server: hub.new_request(server) for server in ("", ANY)}
    browser = Session(hub, OWNER)
    for server, request in requests.items():
        (other,) = {*requests} - {server}
        browser.open_lab(hub.server(other))
        url, body = hub.decision(request, other)
        batch = {"decisions": [{"id": request["id"], **body}]}
        code, answer = browser.ask(url, body)
        assert (code, answer["reason"], "decide it there" in answer["message"]) == (409, "not_pending", True)
        code, answer = browser.ask(f"{hub.server(other)}{API}approvals/decisions", batch)
        (one,) = answer["decisions"]
        assert (code, one["code"], one["reason"]) == (200, 409, "not_pending")
        assert hub.read(request, server) == request
    assert browser.ask(*hub.decision(requests[""]))[0] == 200


def test_who_has_no_access_decides_nothing(hub: Hub) -> None:
    request = hub.new_request()

    code, answer = hub.ask(*hub.decision(request), token=hub.token_of(STRANGER))

    assert (code, "needs_person" in str(answer)) == (403, False)
    assert hub.read(request) == request


@pytest.mark.parametrize("server", ["", ANY])
def test_who_was_given_a_share_of_the_server_sees_its_requests_and_decides_none(hub: Hub, server: str) -> None:
    request = hub.new_request(server)
    scope = f"access:servers!server={OWNER}/{server}"
    hub.api(f"shares/{OWNER}/{server}", {"user": STRANGER, "scopes": [scope]})
    try:
        url, body = hub.decision(request, server)
        token, browser = hub.token_of(STRANGER), Session(hub, STRANGER)
        browser.open_lab(hub.server(server))
        for answer in (hub.ask(url, body, token=token), browser.ask(url, body)):
            assert (answer[0], answer[1]["reason"]) == (403, "not_a_decider")
        assert browser.ask(url.removesuffix("/decision")) == (200, request)
    finally:
        hub.api(f"shares/{OWNER}/{server}", {"user": STRANGER}, method="PATCH")
    code, answer = hub.ask(url, body, token=token)  # the server still knows the token, and asks the Hub all the same
    assert (code, "not_a_decider" in str(answer)) == (403, False)
    assert hub.read(request, server) == request


def test_a_token_that_was_revoked_decides_no_more_though_the_server_still_knows_it(hub: Hub) -> None:
    request = hub.new_request(ANY)
    made = hub.api(f"users/{OWNER}/tokens", {})
    page = f"{hub.server(ANY)}jupyter-agentbox/approvals"
    assert hub.ask(page, token=made["token"])[0] == 200
    hub.api(f"users/{OWNER}/tokens/{made['id']}", method="DELETE")
    assert hub.ask(page, token=made["token"])[0] == 200  # as the server remembers for some minutes

    code, _ = hub.ask(*hub.decision(request, ANY), token=made["token"])

    assert code == 403
    assert hub.read(request, ANY) == request


def test_while_the_hub_does_not_answer_nothing_is_decided_and_nothing_is_lost(hub: Hub) -> None:
    request, browser = hub.new_request(), Session(hub, OWNER)
    browser.open_lab(hub.server())
    assert browser.ask(f"{hub.server()}jupyter-agentbox/approvals")[0] == 200
    os.kill(hub.process.pid, signal.SIGSTOP)
    try:
        code, answer = browser.ask(*hub.decision(request))
    finally:
        os.kill(hub.process.pid, signal.SIGCONT)

    assert (code, answer["reason"]) == (503, "unknown_reviewer")
    code, answer = browser.ask(*hub.decision(request))
    assert (code, answer["status"]) == (200, "rejected")


def test_other_front_ends_are_told_the_path_and_not_where_the_server_listens(hub: Hub) -> None:
    with hub.kernel() as kernel:
        said = run(kernel, "%agentbox")

    [line] = [line for line in said.splitlines() if "decide at" in line]
    assert line.split()[-1] == f"/jhub/user/{OWNER}/"


def test_a_request_keeps_a_server_from_being_culled_for_an_hour_at_most_and_a_page_that_looks_does_not(
    hub: Hub,
) -> None:
    request, path = hub.new_request(ANY), f"{hub.server(ANY)}api/status"  # it has no `approval_timeout`
    created, expires = (datetime.fromisoformat(request[name]) for name in ("created_at", "expires_at"))
    before = hub.ask(path, token=hub.admin)[1]["last_activity"]

    for page in ("approvals?status=pending", "servers", "grants", "policy", "questions", "threads", "audit", "health"):
        assert hub.ask(f"{hub.server(ANY)}jupyter-agentbox/{page}", token=hub.admin)[0] == 200

    assert hub.ask(path, token=hub.admin)[1]["last_activity"] == before
    assert expires - created == timedelta(hours=1)
