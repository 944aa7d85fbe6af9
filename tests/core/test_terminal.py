from __future__ import annotations

import re

import pytest

from jupyter_agentbox.core.terminal import KNOWN_STATE, TerminalFilter, final_text, without_controls

#: All that may steer a terminal in what was passed on.
ALLOWED = re.compile("\r\x1b\\[K|\x1b\\[[0-9;]*m")


def passed(*pieces: str) -> str:
    found = TerminalFilter()
    return "".join(found.feed(piece) for piece in pieces)


@pytest.mark.parametrize("text", ["", "plain\n", "tab\there", "naïve 😀 👩‍👩‍👧 日本\n", "é"])
def test_text_passes_as_it_is(text: str) -> None:
    assert passed(text) == text


@pytest.mark.parametrize(
    "style",
    ["31", "1;31", "0", "97;104", "38;5;208", "48;2;1;2;3", "0;38;5;1;1;48;2;0;0;255;4"],
)
def test_colors_and_weights_pass(style: str) -> None:
    assert passed(f"a\x1b[{style}mb") == f"a\x1b[{style}mb"


@pytest.mark.parametrize(
    ("style", "kept"),
    [
        ("8", ""),
        ("0;8", "0"),
        ("31;8;1", "31;1"),
        ("5;6;7;2;9", ""),
        ("", "0"),
        (";", "0;0"),
        ("38", ""),
        ("38;5", ""),
        ("38;9;8;1", "1"),
        ("38;5;999", ""),
        ("38;2;8;8", ""),
        ("38:2:1:2:3", ""),
        ("?8", ""),
        (">4;1", ""),
        ("1;" * 100, ""),
    ],
)
def test_of_a_style_nothing_is_kept_that_hides(style: str, kept: str) -> None:
    assert passed(f"a\x1b[{style}mb") == ("a" + (f"\x1b[{kept}m" if kept else "") + "b")


@pytest.mark.parametrize(
    "sequence",
    [
        *("\x1b[2J", "\x1b[1A", "\x1b[10;20H", "\x1b[?25l", "\x1b[?1049h", "\x1b[6n", "\x1b[c", "\x1b[ q", "\x1b[!p"),
        *("\x1b]0;title\x07", "\x1b]52;c;aGFybQ==\x07", "\x1b]8;;http://evil/\x1b\\", "\x1b]0;t\x9c"),
        *("\x1bP$qm\x1b\\", "\x1bX words\x1b\\", "\x1b^words\x1b\\", "\x1b_words\x1b\\"),
        *("\x1bc", "\x1b7", "\x1b8", "\x1bM", "\x1bD", "\x1bE", "\x1b(0", "\x1b#8", "\x1b%G", "\x1b="),
        *("\x9b8m", "\x9b2J", "\x9d0;title\x9c", "\x90q\x9c", "\x84", "\x85", "\x8d"),
        *("\x07", "\x08", "\x0b", "\x0c", "\x0e", "\x0f", "\x00", "\x7f", "\x05", "\x11", "\x1b[31\x18", "\x1b\x1b[2J"),
    ],
)
def test_everything_else_that_steers_a_terminal_is_dropped_also_in_pieces(sequence: str) -> None:
    assert passed(f"a{sequence}b") == "ab"
    assert passed(*f"a{sequence}b") == "ab"


def test_a_sequence_in_two_pieces_of_output_is_one() -> None:
    assert passed("a\x1b", "[", "3", "1", "mb") == "a\x1b[31mb"


@pytest.mark.parametrize("text", ["\x1b]0;never ended\nnext", "\x1b[12;\nnext", "\x1b\nnext"])
def test_a_sequence_that_never_ends_hides_no_line(text: str) -> None:
    assert passed(text).endswith("next")


def test_a_control_string_without_an_end_hides_little() -> None:
    assert passed("\x1b]0;" + "x" * 5000 + "seen").endswith("seen")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("old\rnew\n", "old\r\x1b[Knew\n"),
        ("line\r\nnext", "line\nnext"),
        ("\r\r\rx", "\r\x1b[Kx"),
        ("old\r\x1b[31mnew", "old\x1b[31m\r\x1b[Knew"),
    ],
)
def test_a_line_that_is_written_anew_leaves_nothing_of_the_old_one(text: str, shown: str) -> None:
    assert passed(text) == passed(*text) == shown


@pytest.mark.parametrize("char", ["\u202e", "\u2066", "\u200b", "\u2028", "\ufeff", "\U000e0041", "\ud800"])
def test_what_has_no_shape_or_reorders_a_line_is_spelled_out(char: str) -> None:
    assert passed(f"a{char}b") == f"a<U+{ord(char):04X}>b"


def test_no_sequence_of_bytes_gets_more_through_than_colors() -> None:
    alphabet = "\x1b[]0;?8m\x07\x9b\x9d\\P(K\r\n\x18A\x84"
    for first in alphabet:
        for second in alphabet:
            for third in alphabet:
                for fourth in alphabet:
                    shown = ALLOWED.sub("", passed(f"{first}{second}{third}{fourth}m"))
                    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown), (first, second, third, fourth)


@pytest.mark.parametrize(
    ("pieces", "is_at_start"),
    [([], True), (["a"], False), (["a\n"], True), (["a\n\x1b[31m"], True), (["a\n", "b"], False), (["\x1b[8m"], True)],
)
def test_it_knows_whether_a_line_was_begun(pieces: list[str], is_at_start: bool) -> None:
    found = TerminalFilter()
    for piece in pieces:
        found.feed(piece)
    assert found.is_at_line_start is is_at_start


def test_a_whole_text_can_be_had_without_colors() -> None:
    assert without_controls("\x1b[31mred\x1b[0m\rnext\x1b]0;t\x07") == "red\nnext"


def test_of_a_line_that_is_overwritten_the_last_text_is_final() -> None:
    assert final_text("10 %\r20 %\r\x1b[32m100 %\x1b[0m\nkept\r\nend") == "100 %\nkept\nend"


def test_a_line_without_an_end_takes_no_time_that_grows_with_its_square() -> None:
    assert len(final_text("x" * 2_000_000)) == 2_000_000  # it would take hours


def test_the_known_state_is_reached_from_within_a_control_string() -> None:
    assert KNOWN_STATE.startswith("\x1b\\\x1b[0m")
