"""Running code as a tool call, so that it passes through policy, approval and record like any other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from jupyter_agentbox.analysis.findings import Analysis, AnalysisOutcome
from jupyter_agentbox.core.calls import JsonObject, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Rule
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.exceptions import ToolCallInterruptedError, UnknownToolError
from jupyter_agentbox.protocol.notebook import RUN_CODE_TOOL

#: Runs approved code.
RunCode: TypeAlias = Callable[[str], Awaitable[ToolResult]]

_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"code": {"type": "string"}},
    "required": ["code"],
    "additionalProperties": False,
}
_EFFECTS: Final = {
    AnalysisOutcome.ALLOW: Effect.ALLOW,
    AnalysisOutcome.ASK: Effect.ASK,
    AnalysisOutcome.BLOCK: Effect.DENY,
}


class RunCodeTool:
    """The `ToolCaller` for one piece of code: it runs the approved version, once, and nothing else.

    Parameters
    ----------
    run : callable
        Runs the code.
    analysis : Analysis or None
        The findings in the code, if it was analyzed.
    """

    def __init__(self, run: RunCode, analysis: Analysis | None = None) -> None:
        self._run = run
        self._analysis = analysis
        self._has_run = False

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return the tool, described by the findings in the code, so that a grant covers only the same findings."""
        if tool != RUN_CODE_TOOL:
            raise UnknownToolError(f"there is no tool `{server}.{tool}`")
        found: JsonObject = {}
        if self._analysis is not None:
            findings = [finding.to_json() for finding in self._analysis.findings]
            found = {"outcome": self._analysis.outcome.value, "findings": [*findings]}
        return ToolDescription(
            name=RUN_CODE_TOOL,
            description="Runs Python code in the kernel.",
            input_schema={**_SCHEMA},
            annotations=found,
        )

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:  # noqa: ARG002  # the code's outputs tell
        """Run the approved code."""
        if self._has_run:
            raise ToolCallInterruptedError("an approval of code cannot be remembered: it holds for one run")
        self._has_run = True
        return await self._run(str(call.arguments["code"]))

    def floor(self, call: ToolCall) -> Evaluation:
        """Return the minimum evaluation of the call, whatever the rules allow."""
        if self._analysis is None:
            return Evaluation(effect=Effect.ALLOW)
        effect = _EFFECTS[self._analysis.outcome]
        reason = f"static analysis: {self._analysis.reason}"
        return Evaluation(effect=effect, rule=Rule.of_tool(call, effect, layer=Layer.SESSION, reason=reason))
