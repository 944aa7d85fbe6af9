"""`MockModelServer`: a local server that responds like a language model, with given responses."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from .model_formats import FORMATS, FunctionCall, Json, Message, ModelFormat, Part

#: Maximum time that a held response waits for `MockModelServer.release`, in seconds.
_PATIENCE: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request to the server.

    Parameters
    ----------
    path : str
        Its path, such as ``/v1/responses``.
    headers : mapping
        Its headers, by lower-case name.
    body : bytes
        Its body.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the parsed JSON body."""
        return json.loads(self.body)

    def user_texts(self) -> list[str]:
        """Return the user's messages, oldest first, whatever the request's format."""
        body = self.json()
        spoken = body.get("input", body.get("messages", []))
        if isinstance(spoken, str):
            return [spoken]
        said = [_text_of(one.get("content", "")) for one in spoken if one.get("role") == "user"]
        return [text for text in said if text]


@dataclass(slots=True)
class _Answer:
    """The response to one request."""

    parts: Sequence[Part] = ()
    status: int = 200
    #: An error's text and code.
    error: tuple[str, str | None] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Sent unchanged instead of a response.
    raw: bytes | None = None
    #: Number of events after which the connection breaks.
    cut_after: int | None = None
    #: Set when the response may be sent.
    free: threading.Event | None = None


class MockModelServer:
    """A model with prepared responses, for tests of programs that use one.

    It serves OpenAI's Responses and Chat Completions and Anthropic's Messages, streamed or not, on a free port of
    127.0.0.1. Each request takes the next response from the queue. If there is none, `answer` creates one; without
    `answer`, the response is an error.

    ::

        with MockModelServer() as model:
            model.enqueue_tool_call("run_code", {"code": "print(6 * 7)"})
            model.enqueue_message("It is 42.", phase="final_answer")
            agent = Agent(model="openai:scripted", base_url=model.base_url, api_key="none")

    Parameters
    ----------
    answer : callable, optional
        Creates the response to a request if the queue is empty: messages and calls.
    pause : float
        Seconds between the pieces of a streamed response, for people who watch.

    Attributes
    ----------
    requests : list of ModelRequest
        The received requests, oldest first.
    pause : float
        As above.
    """

    def __init__(self, *, answer: Callable[[ModelRequest], Sequence[Part]] | None = None, pause: float = 0.0) -> None:
        self.requests: list[ModelRequest] = []
        self._make_answer = answer
        self.pause = pause
        self._answers: deque[_Answer] = deque()
        self._held: list[threading.Event] = []
        self._ids = itertools.count(1)
        self._came = threading.Condition()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        self._server = self._thread = None

    @property
    def base_url(self) -> str:
        """The base URL for clients.

        Raises
        ------
        RuntimeError
            The server is not running: it runs within a ``with`` block.
        """
        if self._server is None:
            raise RuntimeError("the model server is not running: use it in a `with` block")
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def enqueue_message(
        self, text: str, phase: str | None = None, deltas: Sequence[str] | None = None, *, is_held: bool = False
    ) -> None:
        """Respond to the next request with a message.

        Parameters
        ----------
        text : str
            The message.
        phase : str, optional
            ``"commentary"`` or ``"final_answer"``; only the Responses format has it.
        deltas : sequence of str, optional
            The pieces in which the text comes when it is streamed; by default, its words.
        is_held : bool
            Whether the answer waits for `release`.
        """
        self._enqueue(_Answer(parts=[self.message(text, phase, deltas)]), is_held=is_held)

    def enqueue_tool_call(self, name: str, arguments: Mapping[str, Any] | str, *, is_held: bool = False) -> None:
        """Respond to the next request with a function call.

        Parameters
        ----------
        name : str
            The function's name.
        arguments : mapping or str
            Its arguments; a string is sent unchanged, even if it is not JSON.
        is_held : bool
            Whether the answer waits for `release`.
        """
        self._enqueue(_Answer(parts=[self.tool_call(name, arguments)]), is_held=is_held)

    def enqueue_parts(self, *parts: Part, is_held: bool = False) -> None:
        """Respond to the next request with several messages and calls, created by `message` and `tool_call`."""
        self._enqueue(_Answer(parts=parts), is_held=is_held)

    def enqueue_error(
        self, status: int, retry_after: float | None = None, *, text: str = "", code: str | None = None
    ) -> None:
        """Respond to the next request with an error.

        Parameters
        ----------
        status : int
            The HTTP status, 400 and above.
        retry_after : float, optional
            Seconds after which the client may retry, sent as ``Retry-After``.
        text : str
            The error message.
        code : str, optional
            OpenAI's error code, such as ``context_length_exceeded``.
        """
        headers = {"Retry-After": f"{retry_after:g}"} if retry_after is not None else {}
        self._enqueue(_Answer(status=status, headers=headers, error=(text or f"error {status}", code)))

    def enqueue_cut(self, text: str, after: int = 4) -> None:
        """Respond to the next request with a message, and break the connection after some events of the stream."""
        self._enqueue(_Answer(parts=[self.message(text)], cut_after=after))

    def enqueue_raw(self, body: bytes, status: int = 200) -> None:
        """Respond to the next request with arbitrary bytes."""
        self._enqueue(_Answer(status=status, raw=body))

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> None:
        """Wait until the server has received a total number of requests.

        Raises
        ------
        TimeoutError
            It did not within `timeout` seconds.
        """
        with self._came:
            if not self._came.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"the model received {len(self.requests)} requests, not {count}")

    def release(self) -> None:
        """Send held responses."""
        held, self._held = self._held, []
        for one in held:
            one.set()

    def reset(self) -> None:
        """Send held responses, and forget the queue and the received requests."""
        self.release()
        with self._came:
            self._answers.clear()
            self.requests.clear()

    def message(self, text: str, phase: str | None = None, deltas: Sequence[str] | None = None) -> Message:
        """Create a message for `enqueue_parts`."""
        return Message(text=text, phase=phase, deltas=None if deltas is None else tuple(deltas))

    def tool_call(self, name: str, arguments: Mapping[str, Any] | str) -> FunctionCall:
        """Create a call for `enqueue_parts`."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return FunctionCall(id=f"call_{next(self._ids)}", name=name, arguments=text)

    def _enqueue(self, answer: _Answer, *, is_held: bool = False) -> None:
        if is_held:
            answer.free = threading.Event()
            self._held.append(answer.free)
        self._answers.append(answer)

    def _take(self, request: ModelRequest) -> tuple[str, _Answer]:
        with self._came:
            self.requests.append(request)
            self._came.notify_all()
            id_ = f"resp_{len(self.requests)}"
            if self._answers:
                return id_, self._answers.popleft()
        if self._make_answer is not None:
            return id_, _Answer(parts=self._make_answer(request))
        text = f"request {len(self.requests)} came, and no answer was enqueued for it"
        return id_, _Answer(status=400, error=(text, None))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: MockModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep silent: in tests, clients disconnect during a response."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise, each piece of a stream would wait up to 40 ms for an acknowledgement
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        headers = {name.lower(): value for name, value in self.headers.items()}
        used = next((one for one in FORMATS if path.endswith(one.path)), None)
        if used is None:
            self._send(404, b'{"error": {"message": "no such path"}}')
            return
        request = ModelRequest(path=path, headers=headers, body=body)
        id_, answer = self.server.model._take(request)
        if answer.free is not None:
            answer.free.wait(_PATIENCE)
        self._answer(used, id_, request.json(), answer)

    def _answer(self, used: ModelFormat, id_: str, asked: Json, answer: _Answer) -> None:
        model = str(asked.get("model", ""))
        if answer.raw is not None:
            self._send(answer.status, answer.raw, answer.headers)
        elif answer.error is not None:
            body = used.error(answer.status, *answer.error)
            self._send(answer.status, json.dumps(body).encode(), answer.headers)
        elif asked.get("stream"):
            self._stream(used.events(id_, model, answer.parts), answer.cut_after)
        else:
            self._send(200, json.dumps(used.whole(id_, model, answer.parts)).encode())

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[tuple[str, str]], cut_after: int | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for name, data in itertools.islice(events, cut_after):
            event = (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
            self._chunk(event.encode())
            if name.endswith("delta"):
                time.sleep(self.server.model.pause)
        if cut_after is None:
            self._chunk(b"")
        else:
            self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(one.get("text", "")) for one in content if isinstance(one, dict))
