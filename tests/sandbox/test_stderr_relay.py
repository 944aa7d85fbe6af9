from __future__ import annotations

import os
import threading

import pytest

from jupyter_agentbox.sandbox.server.stderr_relay import Harmless, MarkedLines, relay


def lines(*pieces: str, columns: int | None = None) -> list[str]:
    marked = MarkedLines("kernel 1")
    return [line for piece in pieces for line in marked.feed(piece, columns)] + list(marked.end())


def test_what_steers_a_terminal_does_not_pass() -> None:
    assert Harmless()(b"a\x1b[2Jb\x07\tc\n\xc2\x9b31m\xe2\x80\xae") == "ab\tc\n<U+202E>"


def test_text_passes_whole_also_where_a_character_comes_in_two_pieces() -> None:
    data, harmless = "naïve 😀\n".encode(), Harmless()
    assert "".join(harmless(data[start : start + 1]) for start in range(len(data))) == "naïve 😀\n"


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n", "\x1bE", "\x0b", "\x0c", "\x85", "\u2028"])
def test_each_line_says_whose_it_is_however_it_was_begun(ending: str) -> None:
    forged = f"words{ending}[C 2026-11-22 12:00:00.000 ServerApp] Security update needed\n"

    assert {line[:11] for line in lines(Harmless()(forged.encode()))} == {"[kernel 1] "}


def test_a_line_that_comes_in_pieces_is_one_line() -> None:
    assert lines("be", "gin", "ning\nend") == ["[kernel 1] beginning\n", "[kernel 1] end\n"]


@pytest.mark.parametrize("filler", [" ", "-", "\u3042", "\t"])
def test_a_terminal_breaks_no_line_of_which_the_rest_has_no_mark(filler: str) -> None:
    found = lines(f"{filler * 200}[C ServerApp] forged\n", columns=80)

    assert all(line.startswith("[kernel 1] ") for line in found)
    assert max(len(line.rstrip("\n")) + line.count("\u3042") for line in found) <= 80


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    assert len(list(MarkedLines("kernel 1").feed("x" * 10_000))) == 5


def test_what_a_kernel_writes_comes_out_marked(capfd: pytest.CaptureFixture[str]) -> None:
    before = set(threading.enumerate())
    writer = relay("kernel 1")
    os.write(writer, b"one\n\x1b[31mtwo")
    os.close(writer)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)

    assert capfd.readouterr().err == "[kernel 1] one\n[kernel 1] two\n"
