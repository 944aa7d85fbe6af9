"""Who decided, over HTTP against a Jupyter server without a Hub. `tests/hub` has one with a Hub."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from http.cookies import SimpleCookie
from typing import Any

import pytest
from jupyter_server.auth.authorizer import Authorizer
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.registration import OWN_SERVER, REGISTER_TOOL
from jupyter_agentbox.core.reviewers import DECIDE_SCOPE, MANAGE_SCOPE, READ_SCOPE
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.reviewers import why_no_scope_reaches_browsers
from tests.samples import a_call

TOOL = ToolDescription(name="delete_order")
ASK = Evaluation(effect=Effect.ASK)


class WriteOnly(Authorizer):
    """Lets everybody write, and nobody read."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:  # noqa: ARG002
        return action == "write"


class Scopes(Authorizer):
    """Lets everybody do some things, and notes the scope for all others, as `ScopeAuthorizer` does."""

    allowed: frozenset[tuple[str, str]] = frozenset()

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:  # noqa: ARG002
        is_allowed = (action, resource.removeprefix("jupyter_agentbox:")) in self.allowed
        if not is_allowed:
            handler.missing_scope = MANAGE_SCOPE
        return is_allowed


class DecidesOnly(Authorizer):
    """Lets everybody decide and read, and change nothing else."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:  # noqa: ARG002
        return action == "read" or resource == "jupyter_agentbox:approvals"


class Deciding(Scopes):
    """Lets everybody decide, and read nothing."""

    allowed = frozenset({("write", "approvals")})


@pytest.fixture
def jp_server_config(jp_server_config: Any, tmp_path: Any, request: pytest.FixtureRequest) -> Any:
    marker = request.node.get_closest_marker("parametrize")
    more = request.node.callspec.params.get("traits", {}) if marker is not None else {}
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}, **more.get("ServerApp", {})},
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
            **more.get("AgentBoxApp", {}),
        },
    }


@pytest.fixture
def log_in(jp_fetch: Any, jp_serverapp: Any) -> Callable[[], Awaitable[str]]:
    """Return the cookies of a browser whose address line had the token once."""

    async def log_in() -> str:
        page = await jp_fetch("api", "me", params={"token": jp_serverapp.identity_provider.token})
        found = SimpleCookie()
        for header in page.headers.get_list("Set-Cookie"):
            found.load(header)
        return "; ".join(f"{name}={morsel.value}" for name, morsel in found.items())

    return log_in


@pytest.fixture
def post(http_server_client: Any, jp_base_url: str, jp_serverapp: Any) -> Any:
    async def post(request: ApprovalRequest, *, token: bool = False, cookies: str = "", **body: Any) -> Any:
        headers = {"Cookie": f"{cookies}; _xsrf={'0' * 32}", "X-XSRFToken": "0" * 32}
        if token:
            headers["Authorization"] = f"token {jp_serverapp.identity_provider.token}"
        body = {"decision": "reject_once", "digest": request.call.digest, **body}
        path = f"{jp_base_url}jupyter-agentbox/approvals/{request.id}/decision"
        try:
            answer = await http_server_client.fetch(path, method="POST", body=json.dumps(body), headers=headers)
        except HTTPClientError as error:
            return error.code, json.loads(error.response.body if error.response else "null")
        return answer.code, json.loads(answer.body)

    return post


PERSON = {"AgentBoxApp": {"decide_with": "person"}}
WRITERS = {"ServerApp": {"authorizer_class": WriteOnly}}
DECIDERS = {"ServerApp": {"authorizer_class": Deciding}}


@pytest.mark.parametrize("token", [True, False])
async def test_a_browser_shows_its_login_whether_its_page_sends_the_token_or_not(
    approvals: ApprovalManager, post: Any, log_in: Any, token: bool
) -> None:
    code, body = await post(await approvals.open(a_call(), TOOL, ASK), cookies=await log_in(), token=token)
    assert (code, body["decision"]["via"]) == (200, "browser")


async def test_a_token_alone_is_a_programs(approvals: ApprovalManager, post: Any) -> None:
    code, body = await post(await approvals.open(a_call(), TOOL, ASK), token=True)

    decision = body["decision"]
    assert (code, decision["via"], decision["reviewer_kind"]) == (200, "api_token", "user")
    assert (decision["credential"], decision["hub_server"]) == (None, None)


async def test_where_nobody_logs_in_a_program_is_not_taken_for_anything(
    approvals: ApprovalManager, post: Any, jp_serverapp: Any
) -> None:
    jp_serverapp.identity_provider.token = ""
    code, body = await post(await approvals.open(a_call(), TOOL, ASK))
    assert (code, body["decision"]["via"]) == (200, "unknown")


@pytest.mark.parametrize("traits", [PERSON])
async def test_a_token_does_not_decide_where_only_persons_do(
    approvals: ApprovalManager, post: Any, log_in: Any, traits: Any
) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)

    code, body = await post(request, token=True, decision="allow_once")
    assert (code, body["reason"]) == (403, "needs_person")
    assert await approvals.get(request.id) == request

    code, body = await post(request, cookies=await log_in())
    assert (code, body["decision"]["via"]) == (200, "browser")


@pytest.mark.parametrize("traits", [PERSON])
async def test_a_cookie_that_the_server_did_not_sign_is_no_login(
    approvals: ApprovalManager, post: Any, log_in: Any, traits: Any
) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    name, _, value = (await log_in()).partition("=")
    code, body = await post(request, cookies=f"{name}={value[:-8]}00000000", token=True)
    assert (code, body["reason"]) == (403, "needs_person")


@pytest.mark.parametrize("traits", [WRITERS])
async def test_who_may_decide_and_not_read_is_told_nothing_of_the_request(
    approvals: ApprovalManager, post: Any, traits: Any
) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)

    code, stale = await post(request, token=True, digest="0" * 64)
    assert (code, stale["reason"], set(stale)) == (409, "stale_digest", {"message", "reason"})

    decided = await post(request, token=True)
    assert decided == (200, {"id": request.id, "status": "rejected"})

    code, late = await post(request, token=True)
    assert (code, late["reason"], set(late)) == (409, "not_pending", {"message", "reason"})


@pytest.mark.parametrize(
    ("allowed", "is_told"),
    [
        ('["custom:agentbox:decide"]', False),
        ('["read:users", "custom:agentbox:decide!user=ada"]', False),
        ("[]", True),
        ('["custom:agentbox:decided"]', True),
        ("null", True),
        ("no JSON", True),
        (None, True),
    ],
)
def test_a_hub_that_gives_no_browser_the_right_to_decide_is_told_of(allowed: str | None, is_told: bool) -> None:
    name = "JUPYTERHUB_OAUTH_CLIENT_ALLOWED_SCOPES"
    why = why_no_scope_reaches_browsers({} if allowed is None else {name: allowed})
    assert bool(why) is is_told
    assert ("c.Spawner.oauth_client_allowed_scopes" in why) is is_told


@pytest.mark.parametrize("scope", [READ_SCOPE, DECIDE_SCOPE, MANAGE_SCOPE])
def test_each_scope_that_no_browser_gets_is_named_alone(scope: str) -> None:
    name = "JUPYTERHUB_OAUTH_CLIENT_ALLOWED_SCOPES"
    assert why_no_scope_reaches_browsers({name: json.dumps([scope])}, scope) == ""
    assert f"`{scope}`" in why_no_scope_reaches_browsers({name: "[]"}, scope)


@pytest.mark.parametrize("traits", [DECIDERS])
@pytest.mark.parametrize("path", ["policy", "approvals", "grants", "audit"])
async def test_who_is_refused_for_lack_of_a_scope_is_told_which(fetch: Any, path: str, traits: Any) -> None:
    code, told = await fetch(path)
    assert (code, told["reason"]) == (403, "not_authorized")
    assert f"`{MANAGE_SCOPE}`" in told["message"]


@pytest.mark.parametrize("traits", [DECIDERS])
@pytest.mark.parametrize("decision", ["allow_always", "reject_always"])
async def test_who_may_only_decide_gives_no_lasting_answer(
    approvals: ApprovalManager, fetch: Any, post: Any, decision: str, traits: Any
) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    code, told = await post(request, token=True, decision=decision)
    assert (code, told["reason"], MANAGE_SCOPE in told["message"]) == (403, "not_authorized", True)

    entries = [{"id": request.id, "digest": request.call.digest, "decision": one} for one in (decision, "reject_once")]
    _, told = await fetch("approvals", "decisions", body={"decisions": entries})
    assert [(one["code"], one["reason"]) for one in told["decisions"]] == [(403, "not_authorized"), (200, None)]


@pytest.mark.parametrize("traits", [DECIDERS])
async def test_who_may_only_decide_lets_no_server_be_added(approvals: ApprovalManager, post: Any, traits: Any) -> None:
    call = ToolCall(server=OWN_SERVER, tool=REGISTER_TOOL, arguments={})
    request = await approvals.open(call, TOOL, ASK)
    code, told = await post(request, token=True, decision="allow_once")
    assert (code, told["reason"], (await approvals.get(request.id)).status.value) == (403, "not_authorized", "pending")

    code, told = await post(request, token=True)
    assert (code, told["status"]) == (200, "rejected")


@pytest.mark.parametrize("traits", [{"ServerApp": {"authorizer_class": DecidesOnly}}])
async def test_another_authorizer_that_keeps_lasting_answers_from_somebody_needs_no_scopes(
    approvals: ApprovalManager, post: Any, traits: Any
) -> None:
    code, told = await post(await approvals.open(a_call(), TOOL, ASK), token=True, decision="allow_always")
    assert (code, told["reason"], "scope" in told["message"]) == (403, "not_authorized", False)
