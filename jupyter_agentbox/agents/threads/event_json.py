"""Turn events as JSON, for pages, which read an HTTP stream, and for the kernel of a cell."""

from __future__ import annotations

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.threads import item_to_json, turn_to_json, usage_to_json

from .events import (
    AgentMessageDelta,
    ApprovalRequested,
    ItemCompleted,
    ItemStarted,
    TurnCompleted,
    TurnEvent,
    TurnStarted,
    UsageUpdated,
)


def event_to_json(event: TurnEvent) -> JsonObject:
    """Return an event as JSON, with its kind in ``type``."""
    return {"type": event.type, **_fields(event)}


def _fields(event: TurnEvent) -> JsonObject:
    match event:
        case TurnStarted() | TurnCompleted():
            return {"turn": turn_to_json(event.turn)}
        case ItemStarted() | ItemCompleted():
            return {"turn_id": event.turn_id, "item": item_to_json(event.item)}
        case AgentMessageDelta():
            return {"turn_id": event.turn_id, "item_id": event.item_id, "delta": event.delta}
        case UsageUpdated():
            return {"turn_id": event.turn_id, "usage": usage_to_json(event.usage)}
        case ApprovalRequested(request=request):
            return {
                "turn_id": event.turn_id,
                "item_id": event.item_id,
                "request_id": request.id,
                "server": request.server_name,
                "tool": request.tool_name,
            }
