"""`hub/openapi.yaml` says what the handlers of the service do, and no endpoint answers who may not use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml
from tornado.httpclient import AsyncHTTPClient

import jupyter_agentbox.hub
from jupyter_agentbox.core.approval_json import request_to_json
from jupyter_agentbox.core.approvers import Approvers, Escalation
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Rule
from jupyter_agentbox.hub import report_handlers
from jupyter_agentbox.hub.api_handlers import AUDIT_FILTERS, FORMATS
from jupyter_agentbox.hub.handlers import PageHandler
from jupyter_agentbox.hub.reviews import ReviewRequest
from jupyter_agentbox.hub.web_application import routes
from tests.samples import a_decision, a_request

from .service import TIMEOUT, Service, a_policy, running_service

DOCUMENT: Final = yaml.safe_load((Path(jupyter_agentbox.hub.__file__).parent / "openapi.yaml").read_text("utf-8"))
SCHEMAS: Final = DOCUMENT["components"]["schemas"]
METHODS: Final = ("get", "post", "put", "patch", "delete")


def handled() -> set[tuple[str, str]]:
    """Return method and path of all that the handlers answer, but for pages and the login."""
    found = set()
    for route, handler, *_ in routes("/", "https://hub.example.org/services/agentbox/"):
        path = re.sub(r"\(\?P<\w+>[^)]*\)", "{id}", route).replace("([A-Za-z0-9_-]+)", "{server}")
        if not issubclass(handler, PageHandler) and path != "/oauth_callback":
            found |= {(method, path) for method in METHODS if method in vars(handler)}
    return found


def operations() -> Iterator[tuple[str, str]]:
    """Yield method and path of all that the document describes."""
    for path, item in DOCUMENT["paths"].items():
        yield from ((method, path) for method in METHODS if method in item)


def references(value: Any) -> Iterator[str]:
    """Yield what the document refers to."""
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        yield from references(one)


def test_the_document_describes_what_the_handlers_answer() -> None:
    assert set(operations()) == handled()
    names = [DOCUMENT["paths"][path][method]["operationId"] for method, path in operations()]
    assert len(set(names)) == len(names)


def test_what_the_document_refers_to_is_there() -> None:
    beside = Path(jupyter_agentbox.hub.__file__).parent
    for reference in set(references(DOCUMENT)):
        file, _, pointer = reference.partition("#/")
        found = yaml.safe_load((beside / file).read_text("utf-8")) if file else DOCUMENT
        for key in pointer.split("/"):
            found = found[key]


def test_fields_of_a_request_are_those_of_an_answer() -> None:
    escalation = Escalation(group="i", after=900.0)
    approvers = Approvers(group="g", delegates=("h",), escalation=escalation, break_glass="j", needs_reason=True)
    rule = Rule(server="*", tool="*", effect=Effect.ASK, layer=Layer.SITE, approvers=approvers)
    request = replace(a_request(), evaluation=Evaluation(effect=Effect.ASK, rule=rule))
    request = replace(request, votes=(a_decision(request),))

    answer: Any = ReviewRequest(request=request, refusal="", may_reject=True).to_json()

    assert set(answer) - set(request_to_json(request)) == set(SCHEMAS["Request"]["allOf"][1]["properties"])
    assert set(answer["approvers"]) == set(SCHEMAS["Approvers"]["properties"])
    assert set(answer["votes"][0]) == set(SCHEMAS["Vote"]["properties"])


def test_filters_and_formats_of_the_record_are_those_of_the_code() -> None:
    *filters, form = DOCUMENT["paths"]["/api/audit"]["get"]["parameters"]
    assert [one["name"] for one in (*filters, form)] == [*AUDIT_FILTERS, "format"]
    assert form["schema"]["enum"] == list(FORMATS)
    forms = [one for one in DOCUMENT["paths"]["/api/reports"]["get"]["parameters"] if one["name"] == "format"]
    assert forms[0]["schema"]["enum"] == list(report_handlers.FORMATS)


async def status_of(service: Service, method: str, path: str, headers: dict[str, str]) -> int:
    """Return how the service answers an operation."""
    answer = await AsyncHTTPClient().fetch(
        service.url + re.sub("{.*?}", "nothing", path).removeprefix("/"),
        method=method.upper(),
        headers=headers,
        body=None if method in ("get", "delete") else "{}",
        raise_error=False,
        follow_redirects=False,
        request_timeout=TIMEOUT,
    )
    return answer.code


async def test_only_health_answers_who_is_unknown_and_no_other_site_changes_anything(tmp_path: Path) -> None:
    strangers: tuple[dict[str, str], ...] = (
        {},
        *({"Authorization": f"Bearer {one}"} for one in ("nobody", "narrow:ada")),
    )
    async with running_service(tmp_path, a_policy()) as service:
        there = {"Cookie": service.cookie("session:dan"), "Origin": "https://evil.example"}
        for method, path in sorted(operations()):
            item = DOCUMENT["paths"][path][method]
            codes = {await status_of(service, method, path, headers) for headers in strangers}
            assert codes == ({403} if item.get("security") != [] else {200}), (method, path)
            if method != "get":
                assert await status_of(service, method, path, there) == 403, (method, path)
