"""A client may send anything to the REST API: it never meets an error of ours, and only a decision decides."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import strategies as st

from jupyter_agentbox.core.approvals import ApprovalRequest, Lapse, Status
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from tests.services.approvals.test_handlers import ASK, TOOL, a_call
from tests.services.conftest import approvals, jp_server_config

from .fuzzing import fuzz, limited, texts, values

__all__ = ["approvals", "jp_server_config"]  # fixtures

DECISIONS = ["allow_once", "allow_always", "reject_once", "reject_always", "ALLOW_ONCE", "allow", "", None, 1]
DIGEST = "the digest of the request"
FIELDS = ["decision", "digest", "arguments", "reason", "reviewer", "via", "status", "id", "name", "config", "command"]

#: A decision as it should be, with some fields replaced or added.
decisions = st.builds(
    lambda decision, digest, more: {"decision": decision, "digest": digest, **more},
    st.sampled_from(DECISIONS),
    st.sampled_from([DIGEST, "", "0" * 64, None]),
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=3),
)
registrations = st.builds(
    lambda name, config: {"name": name, "config": config}, texts, st.dictionaries(texts, values, max_size=4) | values
)
batches = st.builds(
    lambda entries: {"decisions": entries},
    st.lists(values | st.builds(lambda decision: {"id": "nobody", **decision}, decisions), max_size=3),
)
bodies = st.one_of(
    st.binary(max_size=60),
    decisions,
    batches,
    registrations,
    values,
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=6),
)
paths = st.sampled_from(
    [
        "approvals/{id}/decision",
        "approvals/nobody/decision",
        "approvals/decisions",
        "approvals",
        "approvals/{id}",
        "registrations",
        "registrations/{id}",
        "servers",
        "servers/shop/restart",
        "servers/shop/start",
        "servers/shop/stop",
        "servers/shop/log",
        "servers/shop/tools",
        "kernels/k1",
    ]
)
types = st.sampled_from(["application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/mixed", ""])


@limited
def test_only_a_decision_decides_and_no_answer_is_an_error_of_ours(
    approvals: ApprovalManager,
    http_server_client: Any,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> None:
    async def send(method: str, path: str, body: bytes | None, content_type: str) -> Any:
        headers = {**jp_auth_header, "Content-Type": content_type}
        url = f"{jp_base_url}jupyter-agentbox/{path}"
        return await http_server_client.fetch(url, method=method, body=body, headers=headers, raise_error=False)

    async def check_one(method: str, path: str, body: Any, content_type: str) -> None:
        request = await approvals.open(a_call(), TOOL, ASK)
        data = _bytes_of(body, request)
        answer = await send(method, path.format(id=request.id), None if method == "GET" else data, content_type)
        now = await approvals.get(request.id)

        assert answer.code < 500, (answer.code, answer.body)
        assert b"Traceback" not in answer.body
        if answer.code >= 400 or not path.startswith("approvals/{id}/decision") or method != "POST":
            assert now == request
        else:
            assert _is_decision(json.loads(data), request), data
        if now.status is Status.PENDING:
            await approvals.lapse(request.id, Lapse.WITHDRAWN)

    def check(**example: Any) -> None:
        jp_asyncio_loop.run_until_complete(check_one(**example))

    assert fuzz(
        check, method=st.sampled_from(["POST", "POST", "GET", "PUT"]), path=paths, body=bodies, content_type=types
    )


def _bytes_of(body: Any, request: ApprovalRequest) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, dict) and body.get("digest") == DIGEST:
        body = {**body, "digest": request.call.digest}
    return json.dumps(body).encode()


def _is_decision(body: Any, request: ApprovalRequest) -> bool:
    return body["decision"] in DECISIONS[:4] and body["digest"] == request.call.digest
