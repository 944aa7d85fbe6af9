"""Events of OpenAI's Responses: the same as its library reads, without its look at all kinds of event."""

from __future__ import annotations

from typing import Any

import pytest
from openai import AsyncOpenAI
from openai._models import construct_type
from openai.types.responses import ResponseStreamEvent, ResponseTextDeltaEvent

from jupyter_agentbox.agents.threads.request_bodies import send_bodies_as_they_are
from jupyter_agentbox.agents.threads.response_events import ResponseEvent
from jupyter_agentbox.testing import MockModelServer

DELTA = {"type": "response.output_text.delta", "delta": "It ", "item_id": "i", "sequence_number": 1}
DELTA |= {"content_index": 0, "output_index": 0, "logprobs": []}


async def events_of(model: MockModelServer, *, is_quick: bool) -> list[Any]:
    model.enqueue_parts(model.message("It is 42."), model.tool_call("run_code", {"code": "1"}))
    async with AsyncOpenAI(base_url=model.base_url, api_key="key") as client:
        if is_quick:
            send_bodies_as_they_are(client, is_chat=False)
        return [event async for event in await client.responses.create(model="m", input="go", stream=True)]


async def test_a_stream_has_the_events_that_the_library_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    with MockModelServer() as model:
        by_the_library = await events_of(model, is_quick=False)
        model.reset()
        compared: list[Any] = []
        monkeypatch.setattr("openai._models.validate_type", lambda *, type_, **_: compared.append(type_))
        quick = await events_of(model, is_quick=True)

    assert [type(event) for event in quick] == [type(event) for event in by_the_library]
    assert [event for event in quick if isinstance(event, ResponseTextDeltaEvent)] == [
        event for event in by_the_library if isinstance(event, ResponseTextDeltaEvent)
    ]
    assert len(quick) > 8
    assert compared == []


@pytest.mark.parametrize(
    "data",
    [
        DELTA,
        {**DELTA, "delta": 42},
        {**DELTA, "more": {"than": "known"}},
        {"type": "response.of_tomorrow", "delta": "x"},
        {"type": ["response.created"]},
        {"no": "type"},
        "text",
        None,
    ],
)
def test_what_does_not_fit_is_what_the_library_makes_of_it(data: Any) -> None:
    def made(build: Any) -> Any:
        try:
            return build()
        except (TypeError, ValueError, RuntimeError) as error:
            return type(error)

    ours = made(lambda: ResponseEvent.build(response=None, data=data))
    assert ours == made(lambda: construct_type(type_=ResponseStreamEvent, value=data))
