"""What the service's MCP endpoint says, as MCP's JSON."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

import jupyter_agentbox
from jupyter_agentbox.core.hub_reviews import REVIEW_KEY, HubReview
from jupyter_agentbox.core.questions import QuestionMode
from jupyter_agentbox.core.tools import ToolDescription, ToolResult


def tool_to_json(tool: ToolDescription) -> dict[str, Any]:
    """Return a tool in MCP's format."""
    return {
        "name": tool.name,
        "inputSchema": tool.input_schema,
        **({"title": tool.title} if tool.title else {}),
        **({"description": tool.description} if tool.description else {}),
        **({"outputSchema": tool.output_schema} if tool.output_schema is not None else {}),
        **({"annotations": tool.annotations} if tool.annotations else {}),
    }


def result_to_json(result: ToolResult) -> dict[str, Any]:
    """Return a result in MCP's format."""
    return {
        "content": list(result.content),
        "isError": result.is_error,
        **({} if result.structured is None else {"structuredContent": result.structured}),
        **({"_meta": result.meta} if result.meta else {}),
    }


def failure(text: str) -> dict[str, Any]:
    """Return the result of a call that was refused or failed, with the reason."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def with_review(result: dict[str, Any], review: HubReview | None) -> dict[str, Any]:
    """Return a result with its review in `_meta`, in place of any review claimed by the tool's server."""
    meta = {key: value for key, value in result.pop("_meta", {}).items() if key != REVIEW_KEY}
    if review is not None:
        meta[REVIEW_KEY] = review.to_json()
    return {**result, "_meta": meta} if meta else result


def initialized(server: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a client's `initialize`."""
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in HANDSHAKE_PROTOCOL_VERSIONS else HANDSHAKE_PROTOCOL_VERSIONS[-1],
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": server, "version": jupyter_agentbox.__version__},
    }


def progress(token: str | int, review: HubReview) -> dict[str, Any]:
    """Return a notification of progress that says who is asked."""
    params = {
        "progressToken": token,
        "progress": len(review.approved_by),
        "total": review.count,
        "message": str(review),
        "_meta": {REVIEW_KEY: review.to_json()},
    }
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def new_session(modes: frozenset[QuestionMode]) -> str:
    """Return the id of a new session. It contains what the client can ask its user, because no session is stored."""
    return ".".join([secrets.token_urlsafe(16), *sorted(mode.value for mode in modes)])


def modes_of_session(session: str) -> frozenset[QuestionMode]:
    """Return what a session's client can ask its user."""
    _, *modes = session.split(".")
    return frozenset(mode for mode in QuestionMode if mode.value in modes)
