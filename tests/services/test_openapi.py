"""`openapi.yaml` says what the handlers do, and no endpoint answers somebody who may not use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tornado.httpclient import HTTPClientError

import jupyter_agentbox
from jupyter_agentbox.app.extension import AgentBoxApp
from jupyter_agentbox.core.approval_json import request_to_json
from jupyter_agentbox.core.approvals import Answer, OutcomeState, Status
from jupyter_agentbox.core.grant_uses import Scope
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.core.threads import ApprovalMode, TurnStatus
from jupyter_agentbox.core.tools import ServerState, ServerStatus
from tests.samples import a_decision, a_request

DOCUMENT: Final = yaml.safe_load((Path(jupyter_agentbox.__file__).parent / "openapi.yaml").read_text("utf-8"))
SCHEMAS: Final = DOCUMENT["components"]["schemas"]
METHODS: Final = ("get", "post", "put", "patch", "delete")
#: Variables of routes -> the parameter's name in the document.
NAMES: Final = {"request_id": "id", "thread_id": "id", "turn_id": "id", "grant_id": "id", "question_id": "id"}


def handled() -> set[tuple[str, str]]:
    """Return method and path of all that the handlers answer."""
    found = set()
    for route, handler, *_ in AgentBoxApp.handlers:
        if route.startswith("/jupyter-agentbox"):
            path = re.sub(r"\(\?P<(\w+)>[^)]*\)", lambda group: f"{{{NAMES.get(group[1], group[1])}}}", route)
            path = path.removeprefix("/jupyter-agentbox").removesuffix("/?")
            found |= {(method, path) for method in METHODS if method in vars(handler)}
    return found


def operations() -> Iterator[tuple[str, str]]:
    """Yield method and path of all that the document describes."""
    for path, item in DOCUMENT["paths"].items():
        yield from ((method, path) for method in METHODS if method in item)


def test_document_describes_what_the_handlers_answer() -> None:
    assert set(operations()) == handled()


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [DOCUMENT["paths"][path][method]["operationId"] for method, path in operations()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ("Answer", Answer),
        ("ApprovalMode", ApprovalMode),
        ("GrantScope", Scope),
        ("Isolation", Isolation),
        ("Status", Status),
        ("TurnStatus", TurnStatus),
    ],
)
def test_enumerations_are_those_of_the_code(schema: str, kind: Any) -> None:
    assert sorted(SCHEMAS[schema]["enum"]) == sorted(member.value for member in kind)


def test_fields_of_a_request_are_those_of_an_answer() -> None:
    request = a_request()
    answer = request_to_json(request.decide(a_decision(request)))
    described = SCHEMAS["Request"]["properties"]
    assert set(described) == set(answer)
    for part in ("call", "decision"):
        fields = answer[part]
        assert isinstance(fields, dict)
        assert set(fields) - {"credential", "hub_server"} == set(described[part]["properties"]), part
    assert set(described["outcome"]["properties"]["state"]["enum"]) == {state.value for state in OutcomeState}
    assert set(described["decision"]["properties"]["via"]["enum"]) == {via.value for via in Via}


def test_fields_of_a_server_are_those_of_an_answer() -> None:
    answer = ServerStatus(name="shop", state=ServerState.RUNNING, transport="stdio").to_json()
    # The sign-ins know that, not the servers.
    assert set(SCHEMAS["Server"]["properties"]) == {*answer, "sign_in_error"}
    assert set(SCHEMAS["Server"]["properties"]["state"]["enum"]) == {state.value for state in ServerState}


@pytest.fixture
def jp_server_config(tmp_path: Path) -> Any:
    (tmp_path / "mcp.json").write_text("{}")
    return {
        "ServerApp": {
            "jpserver_extensions": {"jupyter_agentbox": True},
        },
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
        },
    }


async def status_of(client: Any, base_url: str, method: str, path: str, headers: dict[str, str]) -> int:
    url = f"{base_url}jupyter-agentbox{re.sub('{.*?}', 'nobody', path)}"
    body = None if method in ("get", "delete") else "{}"
    try:
        answer = await client.fetch(url, method=method.upper(), body=body, headers=headers, follow_redirects=False)
    except HTTPClientError as error:
        return int(error.code)
    return int(answer.code)


@pytest.mark.parametrize(("method", "path"), sorted(operations()))
class TestNobody:
    async def test_without_a_token_is_answered(
        self, jp_serverapp: Any, http_server_client: Any, jp_base_url: str, method: str, path: str
    ) -> None:
        del jp_serverapp
        status = await status_of(http_server_client, jp_base_url, method, path, {})
        assert status == 403

    async def test_of_another_site_is_answered(
        self,
        jp_serverapp: Any,
        http_server_client: Any,
        jp_base_url: str,
        method: str,
        path: str,
    ) -> None:
        """A page of another site makes the browser send the cookie of a login, and knows no `_xsrf`.

        Jupyter answers another site 404, and what changes something without `_xsrf` 403.
        """
        login = await http_server_client.fetch(
            f"{jp_base_url}api/me?token={jp_serverapp.identity_provider.token}", follow_redirects=False
        )
        cookies = "; ".join(cookie.split(";")[0] for cookie in login.headers.get_list("Set-Cookie"))
        assert "username" in cookies
        assert await status_of(http_server_client, jp_base_url, "get", "/approvals", {"Cookie": cookies}) == 200
        there = {"Cookie": cookies, "Origin": "https://evil.example", "Referer": "https://evil.example/page"}
        assert await status_of(http_server_client, jp_base_url, method, path, there) in (403, 404)
        if method != "get":
            assert await status_of(http_server_client, jp_base_url, method, path, {"Cookie": cookies}) == 403

    async def test_who_is_not_authorized_is_answered(
        self,
        jp_serverapp: Any,
        http_server_client: Any,
        jp_base_url: str,
        jp_auth_header: dict[str, str],
        monkeypatch: pytest.MonkeyPatch,
        method: str,
        path: str,
    ) -> None:
        monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", lambda *_: False)
        status = await status_of(http_server_client, jp_base_url, method, path, jp_auth_header)
        assert status == 403
