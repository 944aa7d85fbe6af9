from __future__ import annotations

from typing import Any

from jupyter_client.session import Session as JupyterSession

from jupyter_agentbox.kernel.code_output import CodeOutput, collected
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE, MAX_CODE_TEXT


class Session:
    """Notes what it sends."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, stream: Any, message: Any, content: Any = None, parent: Any = None, **more: Any) -> None:
        self.sent.append((stream, message, content, parent, more))


def stream(text: str) -> dict[str, Any]:
    return {"name": "stdout", "text": text}


def test_what_is_put_out_under_the_cell_is_told_in_order_and_sent_as_it_was() -> None:
    session = Session()
    message = {"header": {"msg_type": "display_data"}, "parent_header": {"msg_id": "m1"}}
    shown = {**message, "content": {"data": {"text/plain": "<Figure>", "image/png": "…"}}}

    with collected(session, "m1") as output:
        session.send("io", "stream", stream("one\n"), {"msg_id": "m1"}, ident=b"x")
        session.send("io", shown)
        session.send("io", "stream", stream("of another cell"), {"msg_id": "m0"})
        session.send("io", "execute_result", {"data": {"text/plain": "42"}}, {"header": {"msg_id": "m1"}})
    session.send("io", "stream", stream("later"), {"msg_id": "m1"})

    assert (output.text, output.images) == ("one\n<Figure>\n42", 1)
    assert [sent[:2] for sent in session.sent] == [
        ("io", "stream"),
        ("io", shown),
        ("io", "stream"),
        ("io", "execute_result"),
        ("io", "stream"),
    ]
    assert session.sent[0][4] == {"ident": b"x"}


class Socket:
    """Notes the parts of the messages that it sends."""

    def __init__(self) -> None:
        self.sent: list[list[bytes]] = []

    def send_multipart(self, parts: list[bytes], **_options: Any) -> None:
        self.sent.append(parts)


def test_a_reply_is_sent_to_the_identity_that_the_kernel_passes_by_position() -> None:
    session = JupyterSession(key=b"key")
    socket: Any = Socket()

    with collected(session, "m1") as output:
        session.send(socket, "debug_reply", {"success": True}, {"header": {"msg_id": "m0"}}, b"page", [b"buffer"])

    assert (socket.sent[0][0], socket.sent[0][-1], output.text) == (b"page", b"buffer", "")


def test_a_flood_keeps_its_beginning_and_its_end_within_bounds() -> None:
    output = CodeOutput()

    for number in range(100_000):
        output.add("stream", stream(f"line {number}\n"))

    assert len(output.text) < MAX_CODE_TEXT
    assert output.text.startswith("line 0\n")
    assert output.text.endswith("line 99999")
    assert "characters left out" in output.text


def test_one_enormous_text_is_cut_as_well() -> None:
    output = CodeOutput()

    output.add("stream", stream("a" * 5_000_000 + "z"))

    assert len(output.text) < MAX_CODE_TEXT
    assert output.text.endswith("z")


def test_a_progress_bar_counts_once_and_escapes_are_not_told() -> None:
    output = CodeOutput()

    output.add("stream", stream("10 %\r20 %\r\x1b[32m100 %\x1b[0m\n"))

    assert output.text == "100 %"


def test_cards_are_for_people() -> None:
    output = CodeOutput()

    output.add("display_data", {"data": {CARD_MIME_TYPE: {"request_id": "r"}, "text/plain": "waits"}})

    assert output.text == ""


def test_of_a_traceback_the_end_is_told_without_colors() -> None:
    output = CodeOutput()

    output.add("error", {"traceback": ["\x1b[31mx\x1b[0m" * 5000, "\x1b[31mValueError\x1b[0m: no"]})

    assert output.error.endswith("ValueError: no")
    assert len(output.error) <= 4_000
