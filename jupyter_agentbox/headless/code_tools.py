"""Running code as a call of a tool, so that it takes the same way as all others: policy, approval, record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias
from uuid import uuid4

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.tools import Progress, ToolDescription, ToolResult
from jupyter_agentbox.exceptions import UnknownToolError
from jupyter_agentbox.protocol.notebook import RUN_CODE_TOOL

#: Runs code that was approved.
RunCode: TypeAlias = Callable[[str], Awaitable[ToolResult]]

_RUN_CODE: Final = ToolDescription(
    name=RUN_CODE_TOOL,
    description="Runs Python code in the kernel.",
    input_schema={
        "type": "object",
        "properties": {"code": {"type": "string"}},
        "required": ["code"],
        "additionalProperties": False,
    },
)


class CodeTools:
    """The `ToolCaller` of the server ``notebook``: runs approved code for who asked about it."""

    def __init__(self) -> None:
        self._waiting: dict[str, RunCode] = {}

    @contextmanager
    def expecting(self, run: RunCode) -> Iterator[str]:
        """Say who runs the code of one call; yield the id that the call's origin must have as its cell's."""
        cell_id = uuid4().hex
        self._waiting[cell_id] = run
        try:
            yield cell_id
        finally:
            self._waiting.pop(cell_id, None)

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return one tool."""
        if tool != RUN_CODE_TOOL:
            raise UnknownToolError(f"there is no tool `{server}.{tool}`")
        return _RUN_CODE

    async def call_tool(self, call: ToolCall, *, on_progress: Callable[[Progress], None] | None = None) -> ToolResult:  # noqa: ARG002  # the code's outputs tell
        """Run the approved code, once."""
        run = self._waiting.pop(call.origin.cell_id or "", None)
        if run is None:
            raise UnknownToolError(f"`{call.qualified_name}` cannot be called from code")
        return await run(str(call.arguments["code"]))
