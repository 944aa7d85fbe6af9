"""The display of a turn under its cell: messages as they arrive, code before its outputs, cards, the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jupyter_agentbox.core.terminal import without_controls
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.protocol.messages import ITEM_MIME_TYPE
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER

from .call_outputs import CallOutput
from .cells import Cell
from .display import Card, attempt
from .inert_text import inert_code, inert_markdown
from .transport import Transport

#: A message is redisplayed, in full, each time it has grown by this fraction.
_GROWTH: Final = 0.05
#: Item types that are displayed as outputs. Tool calls have cards of their own.
_SHOWN: Final = frozenset({"user_message", "agent_message", "reasoning", "code_run", "notice"})


class TurnView:
    """Displays the events of one turn.

    Parameters
    ----------
    transport : Transport
        Publishes outputs.
    cell : Cell
        The cell for the outputs.
    prompt : str
        The question to the agent, shown in the cell.
    url : str
        The page on which a person decides.
    """

    def __init__(self, transport: Transport, cell: Cell, *, prompt: str, url: str) -> None:
        self._transport = transport
        self._cell = cell
        self._prompt: str | None = prompt
        self._url = url
        self._ids: dict[str, Any] = {}
        self._items: dict[str, dict[str, Any]] = {}
        self._published: dict[str, int] = {}
        self._open: set[str] = set()
        self._card: Card | None = None

    def show(self, event: Mapping[str, Any]) -> None:
        """Display an event. Unknown ones are ignored, since the server's version may differ."""
        item = event.get("item")
        match event.get("type"):
            case "turn_started":
                turn = event.get("turn") or {}
                self._ids = {"thread_id": turn.get("thread_id"), "turn_id": turn.get("id")}
            case "item_started" if isinstance(item, dict):
                self._start(item)
            case "agent_message_delta":
                self._add(str(event.get("item_id")), str(event.get("delta", "")))
            case "item_completed" if isinstance(item, dict):
                self._complete(item)
            case "approval_requested" if event.get("server") == NOTEBOOK_SERVER:
                self._ask(event)
            case "turn_completed":
                self._show_answer()

    def code_starts(self) -> None:
        """Display that the code was approved."""
        self._finish_card("approved")

    def close(self) -> None:
        """Mark items in progress as ended: an interrupt ends the cell before the server reports more."""
        self._finish_card("withdrawn")
        for item_id in sorted(self._open & self._published.keys()):
            item = self._items[item_id]
            is_cut_off = item.get("status") == "in_progress"
            self._publish({**item, "status": "interrupted"} if is_cut_off else item, is_complete=True)
        self._open.clear()

    def _start(self, item: dict[str, Any]) -> None:
        if item.get("type") not in _SHOWN or self._is_prompt(item):
            return
        is_spoken = item["type"] == "agent_message"
        self._items[str(item.get("id"))] = {**item, "text": ""} if is_spoken else item
        self._open.add(str(item.get("id")))
        if not is_spoken:
            self._publish(item, is_complete=False)

    def _is_prompt(self, item: dict[str, Any]) -> bool:
        if item["type"] != "user_message" or item.get("text") != self._prompt:
            return False
        self._prompt = None
        return True

    def _add(self, item_id: str, delta: str) -> None:
        item = self._items.get(item_id)
        if item is not None and delta:
            item["text"] += delta
            if len(item["text"]) > (1 + _GROWTH) * self._published.get(str(item["id"]), 0):
                self._publish(item, is_complete=False)

    def _complete(self, item: dict[str, Any]) -> None:
        if str(item.get("id")) not in self._items:
            return
        shown = self._beside_outputs(item) if item["type"] == "code_run" else item
        self._items[str(item["id"])] = shown
        self._open.discard(str(item["id"]))
        if item["type"] == "code_run":
            self._finish_card(_outcome(item))
        self._publish(shown, is_complete=True)

    def _beside_outputs(self, item: dict[str, Any]) -> dict[str, Any]:
        """Return an item of code without what the cell already shows: its outputs, and the reason on its card."""
        is_on_card = self._card is not None and item.get("status") == "declined"
        return {**item, "text": "", "error": "" if is_on_card else item.get("error", "")}

    def _ask(self, event: Mapping[str, Any]) -> None:
        what = f"{event.get('server')}.{event.get('tool')}"
        output = CallOutput(self._transport, self._cell)
        self._card = Card(output, what=what, request_id=str(event.get("request_id")), cell=self._cell)
        attempt(self._card.show, self._url)

    def _finish_card(self, outcome: str) -> None:
        card, self._card = self._card, None
        if card is not None:
            attempt(card.finish, outcome)

    def _show_answer(self) -> None:
        """Highlight the answer: the last message marked as final, or else the last without a phase."""
        said = [item for item in self._items.values() if item["type"] == "agent_message" and item["text"]]
        for phase in ("final_answer", None):
            answers = [item for item in said if item.get("phase") == phase]
            if answers:
                self._publish(answers[-1], is_complete=True, is_answer=True)
                return

    def _publish(self, item: dict[str, Any], *, is_complete: bool, is_answer: bool = False) -> None:
        item_id = str(item["id"])
        markdown, plain = _as_text(item)
        if is_answer:
            markdown = f"---\n\n{markdown}"
        told = {**self._ids, "item": item, "is_complete": is_complete, "is_answer": is_answer}
        content = {
            "data": {ITEM_MIME_TYPE: told, "text/markdown": markdown, "text/plain": plain},
            "metadata": {},
            "transient": {"display_id": f"agentbox-item-{item_id}"},
        }
        kind = "update_display_data" if item_id in self._published else "display_data"
        self._published[item_id] = len(str(item.get("text", "")))
        self._transport.publish(kind, content, self._cell)


def _as_text(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return an item as Markdown and as plain text, for pages without the lab extension."""
    text = str(item.get("text", ""))
    match item["type"]:
        case "code_run":
            code = str(item.get("code", ""))
            return inert_code(code), without_controls(code)
        case "reasoning":
            line = f"Reasoning ({len(text):,} characters)"
            return f"*{line}*", line
        case "notice":
            line = one_line(text, 1000)
            return f"*{inert_markdown(line)}*", line
        case "user_message":
            return f"**You:** {inert_markdown(text)}", f"You: {without_controls(text)}"
        case _:
            return inert_markdown(text), without_controls(text)


def _outcome(item: Mapping[str, Any]) -> str:
    error = str(item.get("error", ""))
    match item.get("status"):
        case "completed":
            return "approved, done"
        case "failed":
            return "approved, but the code failed"
        case "declined":
            return error or "declined"
        case _:
            return "withdrawn"
