"""What a REST client can send that no page would: each is refused, and nothing is decided or told."""

from __future__ import annotations

import json
from http.cookies import SimpleCookie
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.services.approvals.manager import ApprovalManager

from .test_handlers import ASK, TOOL, a_call

DIGEST = "DIGEST"


@pytest.fixture
def get(http_server_client: Any, jp_base_url: str, jp_auth_header: dict[str, str], jp_serverapp: Any) -> Any:
    """Fetch a path as it is written: `jp_fetch` would quote it."""

    async def get(path: str) -> tuple[int, Any]:
        url = f"{jp_base_url}jupyter-agentbox/{path}"
        response = await http_server_client.fetch(url, headers=jp_auth_header, raise_error=False)
        return response.code, response.body

    return get


@pytest.mark.parametrize(
    "body",
    [
        '{"decision": "reject_once", "decision": "allow_once", "digest": "DIGEST"}',
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": 1, "id": 2}}',
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": NaN}}',
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": Infinity}}',
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": 1e999}}',
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": ' + "9" * 4_000 + "}}",
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": ' + "9" * 10_000 + "}}",
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": ' + "[" * 500 + "]" * 500 + "}}",
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": "\\ud800"}}',
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {"id": 1, "\\udfff": 1, "x": "\\ud800"}}',
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": {}}',
        '{"decision": "allow_once", "digest": "DIGEST", "arguments": "{}"}',
        '{"decision": "reject_once", "digest": "DIGEST", "arguments": {"id": 1}}',
        '{"decision": "allow_once", "digest": "DIGEST", "id": "other"}',
        '{"decision": "ALLOW_ONCE", "digest": "DIGEST"}',
        '{"decision": ["allow_once"], "digest": "DIGEST"}',
        '{"decision": true, "digest": "DIGEST"}',
        '{"decision": "allow_once", "digest": null}',
        '{"decision": "allow_once"}',
        '{"decision": "allow_once", "digest": "DIGEST"} {}',
        "null",
        '"allow_once"',
        "decision=allow_once&digest=DIGEST",
    ],
)
async def test_a_decision_that_is_none_is_422(approvals: ApprovalManager, fetch: Any, body: str) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    code, answer = await fetch(
        "approvals", request.id, "decision", method="POST", body=body.replace(DIGEST, request.call.digest)
    )
    assert (code, "traceback" in answer) == (422, False)
    assert (await approvals.get(request.id)) == request


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"\x00" * 100, b'{"decision": "\xff"}'])
async def test_a_body_that_is_no_text_is_422(approvals: ApprovalManager, jp_fetch: Any, body: bytes) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch("jupyter-agentbox", "approvals", request.id, "decision", method="POST", body=body)
    assert caught.value.code == 422


async def test_a_reason_of_any_characters_is_kept(approvals: ApprovalManager, fetch: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    reason = "lone \ud800, nul \0, bidi \u202e"
    code, answer = await fetch(
        "approvals", request.id, "decision",
        body={"decision": "reject_once", "digest": request.call.digest, "reason": reason},
    )  # fmt: skip
    assert (code, answer["decision"]["reason"]) == (200, reason)
    assert (await approvals.get(request.id)).decision.reason == reason  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "query",
    [
        "limit=-1",
        "limit=1.5",
        "limit=",
        "limit=" + "9" * 5_000,
        "limit=%C2%B2",
        "cursor=bnVsbA==",
        "cursor=WzEsIDJd",
        "cursor=" + "W" * 20_000,
        "cursor=%F0%9F%98%80",
        "status=pending,nope",
        "status=" + "pending," * 500 + "x",
        "status=%25s%n",
    ],
)
async def test_a_query_that_is_none_is_422(get: Any, query: str) -> None:
    code, body = await get(f"approvals?{query}")
    assert (code, bool(json.loads(body)["message"])) == (422, True)


@pytest.mark.parametrize(
    "query", ["kernel_id=%00", "notebook_path=" + "x" * 20_000, "status=" + "pending," * 2_000, "kernel_id='%20OR%201"]
)
async def test_a_query_that_finds_nothing_is_no_error(get: Any, query: str) -> None:
    code, body = await get(f"approvals?{query}")
    assert (code, json.loads(body)) == (200, {"approvals": [], "next": None})


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "HEAD"])
async def test_other_methods_do_nothing(approvals: ApprovalManager, jp_fetch: Any, method: str) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    body = b"{}" if method in ("PUT", "PATCH") else None
    for path in (["approvals"], ["approvals", request.id], ["approvals", request.id, "decision"], ["servers"]):
        with pytest.raises(HTTPClientError) as caught:
            await jp_fetch("jupyter-agentbox", *path, method=method, body=body)
        assert caught.value.code == 405
    assert (await approvals.get(request.id)) == request


@pytest.mark.parametrize(
    "path", ["approvals/%00", "approvals/..%2f..", "approvals/%ff", "approvals/a/b", "servers/%ff/tools"]
)
async def test_a_path_that_is_none_is_refused(get: Any, path: str) -> None:
    code, _ = await get(path)
    assert 400 <= code < 500


async def test_a_pages_cookie_alone_decides_nothing(
    approvals: ApprovalManager, jp_fetch: Any, jp_serverapp: Any, http_server_client: Any, jp_base_url: str
) -> None:
    """Another site can make a browser send its cookie, but not the XSRF token."""
    request = await approvals.open(a_call(), TOOL, ASK)
    page = await jp_fetch("api", "me", params={"token": jp_serverapp.identity_provider.token})
    cookies = SimpleCookie()
    for header in page.headers.get_list("Set-Cookie"):
        cookies.load(header)
    session = {name: morsel.value for name, morsel in cookies.items()}
    decision = json.dumps({"decision": "allow_once", "digest": request.call.digest})
    path = f"{jp_base_url}jupyter-agentbox/approvals/{request.id}/decision"

    for content_type in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
        headers = {
            "Cookie": "; ".join(f"{name}={value}" for name, value in session.items()),
            "Content-Type": content_type,
        }
        with pytest.raises(HTTPClientError) as caught:
            await http_server_client.fetch(path, method="POST", body=decision, headers=headers)
        assert caught.value.code == 403
    batch = json.dumps({"decisions": [{"id": request.id, "decision": "allow_once", "digest": request.call.digest}]})
    batch_path = f"{jp_base_url}jupyter-agentbox/approvals/decisions"
    with pytest.raises(HTTPClientError) as caught:
        await http_server_client.fetch(batch_path, method="POST", body=batch, headers=headers)
    assert caught.value.code == 403
    assert (await approvals.get(request.id)).status.value == "pending"

    token = "0" * 32  # a page reads it from its own cookie, which another site cannot
    allowed = {"Cookie": f"{headers['Cookie']}; _xsrf={token}", "X-XSRFToken": token}
    assert (await http_server_client.fetch(path, method="POST", body=decision, headers=allowed)).code == 200
