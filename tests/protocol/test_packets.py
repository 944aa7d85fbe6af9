from __future__ import annotations

import pytest

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.protocol import packets
from jupyter_agentbox.protocol.messages import MessageError, TooLargeError
from jupyter_agentbox.protocol.packets import MAX_PACKET, Joiner, to_packets


def joined(*parts: bytes) -> list[object]:
    joiner = Joiner()
    return [message for part in parts if (message := joiner.feed(part)) is not None]


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"type": "call", "arguments": {"text": 'é\n"\ud800'}},
        {"text": "x" * MAX_PACKET},
        {"text": "x" * (5 * MAX_PACKET)},
        *({"text": "x" * (2 * (MAX_PACKET - 1) - length)} for length in range(10, 14)),
    ],
)
def test_message_comes_as_it_went(message: JsonObject) -> None:
    parts = list(to_packets(message))
    assert all(0 < len(part) <= MAX_PACKET for part in parts)
    assert joined(*parts) == [message]


def test_message_that_was_not_sent_to_its_end_is_dropped() -> None:
    broken = list(to_packets({"text": "x" * (3 * MAX_PACKET)}))[:-1]
    assert joined(*broken, *to_packets({"next": 1}), *to_packets({"next": 2})) == [{"next": 1}, {"next": 2}]


def test_end_without_a_beginning_is_dropped() -> None:
    *_, last = to_packets({"text": "x" * (2 * MAX_PACKET)})
    assert joined(last, b"", *to_packets({"next": 1})) == [{"next": 1}]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 50_000])
def test_bytes_that_are_no_json_are_told_and_do_no_harm_to_what_follows(data: bytes) -> None:
    joiner = Joiner()
    with pytest.raises(MessageError, match="not JSON"):
        joiner.feed(b"\x03" + data)
    assert joiner.feed(next(to_packets({"next": 1}))) == {"next": 1}


def test_message_without_end_is_dropped_and_its_bytes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MAX_MESSAGE", 3 * MAX_PACKET)
    joiner = Joiner()
    assert joiner.feed(b"\x01" + b"x" * (MAX_PACKET - 1)) is None
    assert joiner.feed(b"\x00" + b"x" * (MAX_PACKET - 1)) is None
    assert joiner.feed(b"\x00" + b"x" * (MAX_PACKET - 1)) is None
    with pytest.raises(MessageError, match="more than"):
        joiner.feed(b"\x00" + b"x")
    assert joiner.feed(b"\x02x") is None
    assert joiner.feed(next(to_packets({"next": 1}))) == {"next": 1}


def test_what_is_no_json_cannot_be_sent() -> None:
    with pytest.raises(TypeError):
        list(to_packets({"value": object()}))  # type: ignore[dict-item]


def test_text_of_any_script_counts_by_the_bytes_that_are_sent() -> None:
    message: JsonObject = {"type": "call", "id": "c1", "text": "ж" * 6_000_000}
    assert joined(*to_packets(message)) == [message]


def test_message_that_is_too_large_says_which_one_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MAX_MESSAGE", 3 * MAX_PACKET)
    with pytest.raises(TooLargeError) as caught:
        joined(*to_packets({"type": "call", "id": "c1", "text": "x" * (4 * MAX_PACKET)}))
    assert caught.value.id == "c1"
    monkeypatch.setattr(packets, "MAX_VALUES", 10)
    with pytest.raises(TooLargeError) as caught:
        joined(*to_packets({"type": "call", "id": "c2", "text": [0] * 20}))
    assert caught.value.id == "c2"
