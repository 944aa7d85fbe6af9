"""Observes whose session or token sends code to a kernel, and so who may have made the code's calls.

A kernel runs all code in one process, so one person's code can call tools while another's runs, and claim to belong to
the other's cell. That is why everybody who has run code in a kernel counts until it ends, and the kernel's claims do
not.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.services.kernels.connection.base import (
    BaseKernelWebsocketConnection,
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
)
from jupyter_server.utils import ensure_async

from jupyter_agentbox.bridge.websocket_messages import V1
from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.reviewers import ReviewerKind, Via
from jupyter_agentbox.services.reviewers import hub_auth_of, note_of_token

#: Messages that run no code of their sender's choice. Pages send most of them automatically.
_HARMLESS: Final = frozenset(
    {
        "kernel_info_request",
        "comm_info_request",
        "comm_close",
        "history_request",
        "is_complete_request",
        "complete_request",
        "inspect_request",
        "interrupt_request",
        "shutdown_request",
        "input_reply",
        "create_subshell_request",
        "delete_subshell_request",
        "list_subshell_request",
    }
)
#: Requests to debuggers and widgets that pages send when they open a notebook.
_ASKED_BY_PAGES: Final = frozenset({"debugInfo", "initialize", "attach", "configurationDone", "disconnect"})
_WIDGETS: Final = "jupyter.widget.control"
_STATES: Final = frozenset({"request_state", "request_states"})
#: Larger contents, in bytes, are not examined for these.
_LONG: Final = 10_000
#: How many askers are told apart per kernel, with notes of tokens and without. Beyond that, notes are left out, and an
#: unknown asker stands for the rest.
MOST_ASKERS: Final = 20
#: Seconds to wait for JupyterHub to tell the note of a token. The kernel's connection waits meanwhile.
_PATIENCE: Final = 2.0
_MADE_UP: Final = re.compile(r"[0-9a-f]{32}")


class KernelAskers:
    """Who has run code in each kernel of a server.

    Parameters
    ----------
    is_running : callable
        Returns whether a kernel with this id exists.
    """

    def __init__(self, is_running: Callable[[str], bool] = lambda _: True) -> None:
        self._is_running = is_running
        self._askers: dict[str, dict[Asker, None]] = {}

    def note(self, kernel_id: str, asker: Asker) -> None:
        """Record that somebody sends code to a kernel."""
        if kernel_id not in self._askers:
            self._askers = {known: each for known, each in self._askers.items() if self._is_running(known)}
        askers = self._askers.setdefault(kernel_id, {})
        for known_as in (asker, replace(asker, token_note="")):
            like_it = sum(bool(other.token_note) == bool(known_as.token_note) for other in askers)
            if known_as in askers or like_it < MOST_ASKERS:
                askers[known_as] = None
                return
        askers[Asker()] = None

    def of(self, kernel_id: str) -> tuple[Asker, ...]:
        """Return everybody who has sent code to a kernel since its first start."""
        return tuple(self._askers.get(kernel_id, ()))


def observed(connection: type[BaseKernelWebsocketConnection], askers: KernelAskers) -> type[Any]:
    """Return a subclass of a kernel connection class that records who sends code.

    Parameters
    ----------
    connection : type
        The server's class for connecting a client's WebSocket to a kernel: its own, or a gateway's.
    askers : KernelAskers
        Records the askers.
    """

    class Observed(connection):  # type: ignore[valid-type, misc]  # which class that is, the server's settings say
        _asker: Asker | None = None

        async def prepare(self) -> None:
            self._asker = await asker_of(self.websocket_handler)
            if hasattr(super(), "prepare"):
                await super().prepare()

        def handle_incoming_message(self, incoming_msg: Any) -> None:
            if may_run_code(incoming_msg, is_v1=getattr(self, "subprotocol", None) == V1):
                askers.note(self.kernel_id, self._asker or Asker())
            super().handle_incoming_message(incoming_msg)

    # The class name is that of its section in configuration files.
    Observed.__name__, Observed.__qualname__ = connection.__name__, connection.__qualname__
    return Observed


def may_run_code(message: str | bytes, *, is_v1: bool) -> bool:
    """Whether a message to a kernel may run code of its sender's choice; true if in doubt."""
    try:
        return _may_run_code(*_read(message, is_v1=is_v1))
    except Exception:  # noqa: BLE001  # a boundary: a client may send anything, and Jupyter deals with it
        return True


def _may_run_code(kind: str, content: Mapping[str, Any]) -> bool:
    if kind in _HARMLESS:
        return False
    if kind == "comm_open":
        return content.get("target_name") != _WIDGETS
    if kind == "comm_msg":
        data = content.get("data")
        return not (isinstance(data, dict) and data.get("method") in _STATES)
    if kind == "debug_request":
        return content.get("command") not in _ASKED_BY_PAGES
    return True


def _read(message: str | bytes, *, is_v1: bool) -> tuple[str, Mapping[str, Any]]:
    if is_v1:
        if int.from_bytes(message[:8], "little") * 8 > len(message):  # type: ignore[arg-type]  # bytes in this protocol
            raise ValueError("it says that it has more parts than there is room for")
        _channel, parts = deserialize_msg_from_ws_v1(message)  # type: ignore[no-untyped-call]  # Jupyter's, untyped
        content = json.loads(parts[3]) if len(parts[3]) < _LONG else {}
        return json.loads(parts[0])["msg_type"], content
    read: Any = deserialize_binary_message if isinstance(message, bytes) else json.loads
    whole = read(message)
    return whole["header"]["msg_type"], whole["content"]


async def asker_of(handler: JupyterHandler) -> Asker:
    """Return the author of a request to the server, as far as known; JupyterHub is only asked for a token's note.

    Unlike `reviewer_of` it trusts JupyterHub's answer from some minutes ago, and treats a page's token as the page: it
    is for the record only, and gives no rights.
    """
    user: Any = handler.current_user
    hub_auth = hub_auth_of(handler.serverapp)
    if hub_auth is not None:
        model: Mapping[str, Any] = getattr(user, "hub_user", None) or (user if isinstance(user, Mapping) else {})
        token = hub_auth.get_token(handler) or ""
        if model.get("session_id"):
            via = Via.BROWSER
        else:
            is_ours = hmac.compare_digest(token.encode(), hub_auth.api_token.encode())
            via = Via.SERVER_TOKEN if is_ours else Via.API_TOKEN
        kind = ReviewerKind.SERVICE if model.get("kind") == "service" else ReviewerKind.USER
        asker = _asker(user, via, kind, name=str(model.get("name") or ""))
        if via is not Via.API_TOKEN or kind is not ReviewerKind.USER:
            return asker
        return replace(asker, token_note=await note_of_token(hub_auth, token, model, patience=_PATIENCE))
    in_cookie = await ensure_async(handler.identity_provider.get_user_cookie(handler))
    if in_cookie is not None and in_cookie.username == user.username:
        return _asker(user, Via.BROWSER, name=user.username)
    if handler.identity_provider.is_token_authenticated(handler):
        # For token requests without a user name, Jupyter generates a new one each time.
        return _asker(user, Via.API_TOKEN, name="" if _MADE_UP.fullmatch(user.username) else user.username)
    return _asker(user, Via.UNKNOWN, name=user.username)


def _asker(user: Any, via: Via, kind: ReviewerKind = ReviewerKind.USER, *, name: str) -> Asker:
    display_name = getattr(user, "display_name", "") if name else ""
    return Asker(name=name, via=via, kind=kind, display_name=display_name if display_name != name else "")
