"""The list of what waits: filters, and answers to several requests at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

from jupyter_agentbox.core.calls import LONG
from jupyter_agentbox.hub.callers import Caller

from .service import Service, a_policy, ask, running_service
from .test_service import call, waiting

BOB = Caller(name="bob", groups=frozenset({"data-stewards"}))


@asynccontextmanager
async def several_asking(directory: Path, *asked: tuple[str, str, str]) -> AsyncIterator[Service]:
    """Let users' code call tools that the data stewards have to allow: who, which, with which argument."""
    async with running_service(directory, a_policy(ask(group="data-stewards"))) as service, AsyncExitStack() as stack:
        callings = []
        known: set[str] = set()
        for user, tool, sql in asked:
            tools = await stack.enter_async_context(service.tools_of(user))
            callings.append(asyncio.create_task(tools.call_tool(call(tool, sql=sql))))
            known.add((await waiting(service, "bob", lambda one: one["id"] not in known))["id"])
        try:
            yield service
        finally:
            for calling in callings:
                calling.cancel()
            await asyncio.wait(callings)


async def test_the_list_can_be_filtered_by_user_server_and_tool(tmp_path: Path) -> None:
    async with several_asking(tmp_path, ("ada", "query", "1"), ("ada", "drop", "2"), ("eve", "drop", "3")) as service:
        found = {
            query: [
                one["call"]["arguments"]["sql"]
                for one in (await service.json(f"api/requests?{query}", token="bob"))["pending"]
            ]
            for query in ("", "asked_by=AD", "tool=drop", "asked_by=eve&tool=drop&server=ware", "server=shop")
        }
        page = (await service.get("?tool=drop&asked_by=%3Cb%3E", session="bob")).body.decode()

    assert found == {
        "": ["3", "2", "1"],
        "asked_by=AD": ["2", "1"],
        "tool=drop": ["3", "2"],
        "asked_by=eve&tool=drop&server=ware": ["3"],
        "server=shop": [],
    }
    assert "Nothing waits for you that matches the filter." in page
    assert 'value="&lt;b&gt;"' in page


async def test_several_requests_are_answered_at_once_and_one_that_is_refused_stops_no_other(tmp_path: Path) -> None:
    async with several_asking(tmp_path, ("ada", "query", "1"), ("bob", "query", "2"), ("ada", "drop", "3")) as service:
        requests = {one["call"]["arguments"]["sql"]: one for one in await service.pending("bob")}
        list_page = (await service.get(session="bob")).body.decode()
        page = (await service.get("?several=1", session="bob")).body.decode()
        selected = [f"{requests[sql]['id']}:{requests[sql]['call']['digest']}" for sql in ("1", "2", "3")]
        form = [("answer", "allow"), ("reason", "fine"), *(("request", one) for one in selected)]
        form.append(("request", "unknown:0"))

        answer = await service.send_form("decisions", "bob", form)

        told = answer.body.decode()
        assert (answer.code, "2 answered, 2 unchanged." in told) == (200, True)
        assert "your own code made this request, so another person has to decide" in told
        (left,) = await service.pending("bob")
        assert left["asked_by"] == "bob"
    rows = re.findall(r"<li>.*?<bdi>(.*?)</bdi></a>(?: <code><bdi>(.*?)</bdi></code>)?: ", told)
    assert [(name, unescape(arguments)) for name, arguments in rows] == [
        ("warehouse.query", '{"sql": "1"}'),
        ("warehouse.query", '{"sql": "2"}'),
        ("warehouse.drop", '{"sql": "3"}'),
        ("unknown", ""),
    ]
    assert [one in page for one in selected] == [True, False, True]
    assert "checked" not in page  # nothing is selected before a person does
    assert ("http-equiv" in list_page, "http-equiv" in page) == (True, False)  # a reload would undo what is selected


async def test_what_the_list_does_not_show_whole_cannot_be_selected_there(tmp_path: Path) -> None:
    asked = (("ada", "query", "x" * 400), ("ada", "query", "p\u0430ypal"), ("ada", "query", "plain"))
    async with several_asking(tmp_path, *asked) as service:
        page = (await service.get("?several=1", session="bob")).body.decode()
        ids = {one["call"]["arguments"]["sql"]: one["id"] for one in await service.pending("bob")}
    assert [f'value="{ids[sql]}:' in page for _, _, sql in asked] == [False, False, True]
    assert page.count("open it to see all of it") == 2


async def test_long_arguments_are_listed_by_their_beginning_which_the_store_has(tmp_path: Path) -> None:
    asked = (("ada", "query", "first"), ("ada", "query", "x" * LONG))
    async with several_asking(tmp_path, *asked) as service:
        long, short = await service.pending("bob")
        whole = await service.json(f"api/requests/{long['id']}", token="bob")

    assert (short["call"]["arguments"], short["call"]["omitted"]) == ({"sql": "first"}, None)
    assert long["call"]["arguments"] is None
    assert long["call"]["omitted"]["head"].startswith('{"sql":')
    assert (whole["call"]["arguments"], whole["call"]["digest"]) == ({"sql": "x" * LONG}, long["call"]["digest"])


async def test_what_waits_is_listed_at_no_query(tmp_path: Path) -> None:
    async with several_asking(tmp_path, ("ada", "query", "1"), ("eve", "query", "2")) as service:
        await service.box.store.aclose()  # what waits is known, whatever the store can say
        listed = [one.request.call.arguments["sql"] for one in await service.box.reviews.pending(BOB)]

    assert listed == ["2", "1"]


async def test_answers_to_several_requests_need_what_one_answer_needs(tmp_path: Path) -> None:
    async with several_asking(tmp_path, ("ada", "query", "1")) as service:
        (request,) = await service.pending("bob")
        entry = {"id": request["id"], "decision": "allow_once", "digest": request["call"]["digest"]}
        form = [("answer", "allow"), ("request", f"{request['id']}:{request['call']['digest']}")]

        by_token = await service.post("api/decisions", {"decisions": [entry]}, {"Authorization": "Bearer bob"})
        no_xsrf = await service.post("decisions", urlencode(form), {"Cookie": service.cookie("session:bob")})
        by_ada = await service.send_form("decisions", "ada", form)
        changed = await service.send_form("decisions", "bob", [("answer", "allow"), ("request", f"{request['id']}:0")])
        nothing = await service.send_form("decisions", "bob", [("answer", "allow")])
        no_answer = await service.send_form("decisions", "bob", [("request", request["id"])])
        too_much = [
            (await service.post("api/decisions", body, {"Authorization": "Bearer bob"}))[0]
            for body in ({"decisions": [entry] * 501}, {"decisions": {}}, {"decisions": [], "reviewer": "bob"})
        ]

        (still,) = await service.pending("bob")
        assert still["status"] == "pending"
    assert [one["reason"] for one in by_token[1]["decisions"]] == ["needs_person"]
    assert no_xsrf[0] == 403
    assert "only members of the group data-stewards may decide" in by_ada.body.decode()
    assert "0 answered, 1 unchanged." in changed.body.decode()
    assert "Nothing was selected, so nothing changed." in nothing.body.decode()
    assert (no_answer.code, too_much) == (422, [422, 422, 422])


async def test_the_title_counts_what_a_person_can_decide(tmp_path: Path) -> None:
    async with several_asking(tmp_path, ("ada", "query", "1")) as service:
        titles = [(await service.get(session=user)).body.decode() for user in ("bob", "ada")]
    assert "<title>(1) Approvals</title>" in titles[0]
    assert "<title>Approvals</title>" in titles[1]
