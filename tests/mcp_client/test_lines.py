from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.mcp_client.lines import KEPT, LineSplitter, LongLine, response_id


@given(st.lists(st.binary(max_size=20)), st.integers(1, 7))
def test_lines_are_the_same_however_they_are_cut(parts: list[bytes], size: int) -> None:
    data = b"\n".join(parts)
    splitter = LineSplitter(1000)
    lines = [line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])]
    lines += splitter.finish()
    expected = data.split(b"\n")
    assert lines == (expected if expected[-1] else expected[:-1])


def test_a_long_line_takes_linear_time() -> None:
    chunk = b"x" * 65536
    splitter = LineSplitter(10**9)
    began = time.process_time()
    for _ in range(1600):
        assert not list(splitter.feed(chunk))
    (line,) = splitter.feed(b"\n")
    assert time.process_time() - began < 5  # to copy the line for each chunk takes longer
    assert len(line if isinstance(line, bytes) else b"") == 1600 * 65536


@pytest.mark.parametrize("size", [1, 7, 5000, 100_000])
def test_of_a_line_over_the_cap_both_ends_are_left_and_the_next_line_is_whole(size: int) -> None:
    data = b"h" * KEPT + b"m" * 50_000 + b"t" * KEPT + b"\nnext\n"
    splitter = LineSplitter(10_000)
    lines = [line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])]
    assert lines == [LongLine(b"h" * KEPT, b"t" * KEPT, 50_000 + 2 * KEPT), b"next"]


@pytest.mark.parametrize("request_id", [7, "a-7"])
@pytest.mark.parametrize(
    "form",
    [
        '{"jsonrpc":"2.0","id":ID,"result":{"x":1}}',
        '{"id": ID, "jsonrpc": "2.0", "result": {"id": 5}}',
        '{"result":{"id":5},"jsonrpc":"2.0","id":ID}',
        '{"result":{"id":5},"id":ID,"jsonrpc":"2.0"}\r',
    ],
)
def test_the_id_of_a_response_is_found_at_either_end(form: str, request_id: int | str) -> None:
    assert response_id(form.replace("ID", json.dumps(request_id)).encode()) == request_id


@pytest.mark.parametrize("line", [b'{"result":{"id":5},"jsonrpc":"2.0"}', b"Listening, id: 5", b'[{"id":5}, 1]', b""])
def test_an_id_inside_a_result_is_not_believed(line: bytes) -> None:
    assert response_id(line) is None
