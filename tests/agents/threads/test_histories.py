"""What is kept of a conversation for the model."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel, model_serializer
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart

from jupyter_agentbox.agents.threads.histories import load_histories
from jupyter_agentbox.agents.threads.turns import Conversation


class Noting(BaseModel):
    """Notes in which thread it is written."""

    @model_serializer
    def note(self) -> dict[str, Any]:
        written_in.append(threading.current_thread())
        return {}


written_in: list[threading.Thread] = []


async def test_a_conversation_is_written_beside_the_loop_since_a_long_one_takes_a_while() -> None:
    answer = ToolReturnPart("run_code", Noting(), tool_call_id="c1")
    question, call = ModelRequest(parts=[]), ModelResponse(parts=[])

    await Conversation([question, call, ModelRequest(parts=[answer])], 0).kept()

    assert written_in != []
    assert threading.main_thread() not in written_in


async def test_a_short_one_is_written_at_once_since_a_thread_would_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(*_: object) -> None:
        raise AssertionError("a thread was used")

    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", no_thread)
    question, answer = ModelRequest(parts=[UserPromptPart("go")]), ToolReturnPart("run_code", "42", tool_call_id="c1")
    call = ModelResponse(parts=[ToolCallPart("run_code", '{"code": "6 * 7"}', tool_call_id="c1")])
    said: list[ModelMessage] = [question, call, ModelRequest(parts=[answer])]

    assert load_histories([await Conversation(said, 0).kept()]) == said
