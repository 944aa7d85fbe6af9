"""What is kept of a conversation for the model."""

from __future__ import annotations

import threading
from typing import Any

from pydantic import BaseModel, model_serializer
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart

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
