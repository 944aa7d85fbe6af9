"""Which caller a call goes to."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.exceptions import UnknownToolError
from jupyter_agentbox.services.calls.router import ToolRouter
from jupyter_agentbox.testing import FakeTools


def who_calls(name: str) -> Any:
    async def tool(call: ToolCall, report: Any) -> Any:
        return {"called by": name}

    return tool


OWN = FakeTools({"shell.run": who_calls("own")})
OTHERS = FakeTools(
    {"shell.run": who_calls("others"), "shell.more": who_calls("others"), "shop.find": who_calls("others")}
)


@pytest.mark.parametrize(("server", "tool", "caller"), [("shell", "run", "own"), ("shop", "find", "others")])
async def test_a_call_goes_to_the_caller_of_its_server(server: str, tool: str, caller: str) -> None:
    router = ToolRouter({"shell": OWN}, others=OTHERS)
    result = await router.call_tool(ToolCall(server=server, tool=tool, arguments={}))
    assert result.structured == {"called by": caller}
    assert (await router.describe(server, tool)).name == tool


async def test_a_configured_server_adds_no_tool_to_one_of_ours() -> None:
    with pytest.raises(UnknownToolError):
        await ToolRouter({"shell": OWN}, others=OTHERS).describe("shell", "more")
