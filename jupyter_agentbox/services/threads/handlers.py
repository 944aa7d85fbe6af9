"""REST: agents' threads, their turns, and a turn's event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.ports import ThreadQuery
from jupyter_agentbox.core.threads import ApprovalMode, Turn, turn_to_json
from jupyter_agentbox.exceptions import InvalidRequestError
from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.json_answers import answer_text

if TYPE_CHECKING:
    from .event_reader import EventReader
    from .manager import NotebookThreads

AUTH_RESOURCE: Final = "jupyter_agentbox:threads"
MAX_LIMIT: Final = 500
#: Maximum length of a thread's or model's name, in characters.
MAX_NAME: Final = 500
#: Maximum length of a message to a working agent, in characters.
MAX_TEXT: Final = 100_000
#: Maximum number of digits of an event's number.
_MOST_DIGITS: Final = 12
_FIELDS: Final = ("name", "is_archived", "approval_mode", "model")


class ThreadsAPIHandler(AgentBoxHandler):
    """Base of the handlers of threads."""

    auth_resource = AUTH_RESOURCE

    @property
    def threads(self) -> NotebookThreads:
        """The threads of this server."""
        return self.services.threads()

    async def finish_entry(self, thread_id: str) -> None:
        """Respond with a thread, or only its id if the client may not read it."""
        if await self.may_read(AUTH_RESOURCE):
            self.finish_json((await self.threads.entry(thread_id)).to_json())
        else:
            self.finish_json({"id": thread_id})

    def finish_brief(self, turn: Turn) -> None:
        """Respond with the part of a turn for clients who may change but not read it."""
        self.finish_json({"id": turn.id, "thread_id": turn.thread_id, "status": turn.status.value})


class ThreadsHandler(ThreadsAPIHandler):
    """All threads, most recently changed first."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List a page of threads."""
        try:
            entries, following = await self.threads.list(self._query())
        except ValueError as error:
            raise self.bad_query(str(error)) from None
        self.finish_json({"threads": [entry.to_json() for entry in entries], "next": following})

    def _query(self) -> ThreadQuery:
        limit = self.get_query_argument("limit", "50")
        if not limit.isdecimal() or len(limit) > len(str(MAX_LIMIT)) or not 1 <= int(limit) <= MAX_LIMIT:
            raise ValueError(f"`limit` must be a number from 1 to {MAX_LIMIT}")
        archived = self.get_query_argument("archived", "0")
        if archived not in ("0", "1"):
            raise ValueError("`archived` must be 0 or 1")
        return ThreadQuery(
            is_archived=archived == "1",
            notebook_path=self.get_query_argument("notebook_path", "") or None,
            limit=int(limit),
            cursor=self.get_query_argument("cursor", "") or None,
        )


class ThreadHandler(ThreadsAPIHandler):
    """One thread."""

    @web.authenticated
    @authorized
    async def get(self, thread_id: str) -> None:
        """Read a thread with its turns."""
        entry = await self.threads.read(thread_id)

        def to_text() -> str:
            return answer_text({**entry.to_json(), "turns": [turn_to_json(turn) for turn in entry.thread.turns]})

        # In a thread: serializing a long conversation would block the loop.
        self.finish_text(await asyncio.to_thread(to_text))

    @web.authenticated
    @authorized
    async def patch(self, thread_id: str) -> None:
        """Change a thread."""
        body = self.json_object()
        _check_fields(body, _FIELDS)
        is_archived, mode = body.get("is_archived"), body.get("approval_mode")
        if is_archived is not None and not isinstance(is_archived, bool):
            raise InvalidRequestError("`is_archived` must be true or false")
        modes = [each.value for each in ApprovalMode]
        if mode is not None and mode not in modes:
            raise InvalidRequestError(f"`approval_mode` must be one of {', '.join(modes)}")
        await self.threads.change(
            thread_id,
            name=_text(body, "name", most=MAX_NAME),
            is_archived=is_archived,
            mode=ApprovalMode(mode) if mode is not None else None,
            model=_text(body, "model", most=MAX_NAME),
        )
        await self.finish_entry(thread_id)

    @web.authenticated
    @authorized
    async def delete(self, thread_id: str) -> None:
        """Delete a thread and its turns."""
        await self.threads.delete(thread_id)
        self.set_status(204)
        self.finish()


class ThreadForkHandler(ThreadsAPIHandler):
    """Copies of a thread."""

    @web.authenticated
    @authorized
    async def post(self, thread_id: str) -> None:
        """Start a thread as a copy of this one."""
        body = self.json_object() if self.request.body else {}
        _check_fields(body, ("turn_id",))
        fork = await self.threads.fork(thread_id, turn_id=_text(body, "turn_id", most=MAX_NAME))
        self.set_status(201)
        await self.finish_entry(fork.id)


class ThreadMessagesHandler(ThreadsAPIHandler):
    """The messages of a thread to and from the model."""

    @web.authenticated
    @authorized
    async def get(self, thread_id: str) -> None:
        """Return the messages to and from the model."""
        messages = await self.threads.messages(thread_id)
        self.finish_text(await asyncio.to_thread(answer_text, {"messages": messages}))


class TurnHandler(ThreadsAPIHandler):
    """One turn."""

    @web.authenticated
    @authorized
    async def get(self, turn_id: str) -> None:
        """Read a turn."""
        turn = await self.threads.turn(turn_id)
        self.finish_text(await asyncio.to_thread(lambda: answer_text(turn_to_json(turn))))


class TurnSteerHandler(ThreadsAPIHandler):
    """Messages to a working agent."""

    @web.authenticated
    @authorized
    async def post(self, turn_id: str) -> None:
        """Send the agent a message, which it receives before its next step."""
        body = self.json_object()
        _check_fields(body, ("text",))
        text = _text(body, "text", most=MAX_TEXT)
        if not text or text.isspace():
            raise InvalidRequestError("`text` must be what the agent is told")
        self.finish_brief(await self.threads.steer(turn_id, text))


class TurnInterruptHandler(ThreadsAPIHandler):
    """Interruption of a turn."""

    @web.authenticated
    @authorized
    async def post(self, turn_id: str) -> None:
        """Interrupt the turn, whatever it waits for."""
        if self.request.body:
            _check_fields(self.json_object(), ())
        self.finish_brief(await self.threads.interrupt(turn_id))


class TurnEventsHandler(ThreadsAPIHandler):
    """A turn's events, as a resumable stream."""

    _sending: asyncio.Task[None] | None = None

    @web.authenticated
    @authorized
    async def get(self, turn_id: str) -> None:
        """Send the turn's events, past and future, until its end."""
        try:
            reader = await self.threads.events(turn_id, self._after())
        except ValueError as error:
            raise self.bad_query(str(error)) from None
        if reader.is_at_end:  # 204, which tells a browser not to reconnect
            self.set_status(204)
            self.finish()
            return
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Accel-Buffering", "no")
        self._sending = asyncio.create_task(self._send(reader))
        try:
            await asyncio.wait([self._sending])
        finally:
            self._sending.cancel()
        if not self._sending.cancelled():
            self._sending.result()

    def on_connection_close(self) -> None:
        """Stop: the client has disconnected."""
        super().on_connection_close()
        if self._sending is not None:
            self._sending.cancel()

    async def _send(self, reader: EventReader) -> None:
        with suppress(StreamClosedError):
            while text := await reader.read():
                self.write(text)
                await self.flush()  # waits for a slow client; meanwhile, events are not buffered here

    def _after(self) -> int:
        """Return how many events the client has. A reconnecting browser adds the header to the same address."""
        after = self.request.headers.get("Last-Event-ID") or self.get_query_argument("after", "0")
        if not (after.isascii() and after.isdecimal()) or len(after) > _MOST_DIGITS:
            raise ValueError("`after`, or the header `Last-Event-ID`, must be the number of an event")
        return int(after)


def _check_fields(body: JsonObject, known: Sequence[str]) -> None:
    unknown = sorted(set(body) - set(known))
    if unknown:
        raise InvalidRequestError(f"unknown field `{unknown[0]:.80}`; known are: {', '.join(known) or 'none'}")


def _text(body: JsonObject, name: str, *, most: int) -> str | None:
    text = body.get(name)
    if text is not None and (not isinstance(text, str) or len(text) > most):
        raise InvalidRequestError(f"`{name}` must be a string of at most {most:,} characters")
    return text


_THREAD: Final = r"(?P<thread_id>[A-Za-z0-9_-]+)"
_TURN: Final = r"(?P<turn_id>[A-Za-z0-9_-]+)"

default_handlers = [
    (r"/jupyter-agentbox/threads/?", ThreadsHandler),
    (rf"/jupyter-agentbox/threads/{_THREAD}/?", ThreadHandler),
    (rf"/jupyter-agentbox/threads/{_THREAD}/fork/?", ThreadForkHandler),
    (rf"/jupyter-agentbox/threads/{_THREAD}/messages/?", ThreadMessagesHandler),
    (rf"/jupyter-agentbox/turns/{_TURN}/?", TurnHandler),
    (rf"/jupyter-agentbox/turns/{_TURN}/steer/?", TurnSteerHandler),
    (rf"/jupyter-agentbox/turns/{_TURN}/interrupt/?", TurnInterruptHandler),
    (rf"/jupyter-agentbox/turns/{_TURN}/events/?", TurnEventsHandler),
]
