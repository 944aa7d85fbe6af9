from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from jupyter_agentbox.codegen.modules import generate_module
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.kernel.results import CallResult


class Recorder:
    """Stands where the kernel's link stands, and keeps what functions send."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, dict[str, Any]]] = []

    def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        self.sent.append((server, tool, dict(arguments)))
        return CallResult(structured={"sent": len(self.sent)})

    async def call_async(self, server: str, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        return self.call(server, tool, arguments)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    runtime.use(made)  # type: ignore[arg-type]  # it has the two methods that functions use
    yield made
    runtime.use(None)


Build = Callable[..., Any]


@pytest.fixture
def build() -> Build:
    """Generate the module of one tool, execute it, return the function."""

    def make(schema: Any = None, *, name: str = "tool", **fields: Any) -> Any:
        given = {} if schema is None else {"input_schema": schema}
        module = generate_module("shop", [ToolDescription(name=name, **given, **fields)])
        return execute(module.source)[module.functions[0][1]]

    return make


def execute(source: str) -> dict[str, Any]:
    """Execute a generated source as a module does."""
    namespace: dict[str, Any] = {"__name__": "jupyter_agentbox.tools.shop"}
    exec(compile(source, "<generated>", "exec", dont_inherit=True), namespace)
    return namespace
