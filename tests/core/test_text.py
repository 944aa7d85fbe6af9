from __future__ import annotations

import re
from pathlib import Path

import pytest

from jupyter_agentbox.core.text import (
    counted,
    did_you_mean,
    encodable,
    fenced,
    first_sentence,
    one_line,
    unseen,
    visible,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text\nin lines", "plain text\nin lines"),
        ("Überschrift 日本語 🙂", "Überschrift 日本語 🙂"),
        ("a\u202eb", "a<U+202E>b"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("null\x00, escape\x1b[2J", "null<U+0000>, escape<U+001B>[2J"),
        ("lone \ud800", "lone <U+D800>"),
        ("line\u2028separator", "line<U+2028>separator"),
        ("tag \U000e0041, selector \U000e0100", "tag <U+E0041>, selector <U+E0100>"),
        ("a\r\nb\rc\td", "a\nb\nc    d"),
        ("Hello\ufe05\ufe0f Bob\u034f", "Hello<U+FE05><U+FE0F> Bob<U+034F>"),
        ("filler \u3164, blank \u00a0\u2800", "filler <U+3164>, blank <U+00A0><U+2800>"),
        ("heart ❤\ufe0f, twice ❤\ufe0f\ufe0f", "heart ❤\ufe0f, twice ❤\ufe0f<U+FE0F>"),
    ],
)
def test_what_hides_or_reorders_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_whatever_the_page_spells_out_is_spelled_out_here() -> None:
    source = (Path(__file__).parents[2] / "labextension/src/ui/text/visibleText.ts").read_text("utf-8")
    classes = source[source.index("HIDDEN_CLASSES = [") : source.index("];")]
    ranges = re.findall(r"\\\\u\{?([0-9a-f]+)\}?(?:-\\\\u\{?([0-9a-f]+)\}?)?", classes)
    listed = [chr(code) for low, high in ranges for code in range(int(low, 16), int(high or low, 16) + 1)]

    assert len(listed) > 270
    assert [char for char in listed if visible(f"a{char}") != f"a<U+{ord(char):04X}>"] == []


def test_what_cannot_be_seen_is_found_with_its_place_but_not_line_feeds_and_what_pictures_need() -> None:
    assert list(unseen("a\u202eb\n\u2764\ufe0f \u200bc")) == [(1, "\u202e"), (7, "\u200b")]
    assert list(unseen("plain text,\nin two lines")) == []


def test_half_of_a_surrogate_pair_is_replaced_and_nothing_else() -> None:
    for text in ("plain", "Überschrift 🙂", "\ufeffmark"):
        assert encodable(text) == text
    assert encodable("half \ud83d, \ud83d\ude42") == "half \ufffd, 🙂"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 entries"), (1, "1 entry"), (2, "2 entries"), (2000, "2,000 entries")]
)
def test_a_noun_has_the_form_that_goes_with_its_number(number: int, text: str) -> None:
    assert counted(number, "entry", "entries") == text
    assert counted(number, "row") == text.replace("entries", "rows").replace("entry", "row")


def test_one_line_is_one_line_and_short() -> None:
    assert one_line(" a\n b\x00 ") == "a b<U+0000>"
    assert one_line("x" * 300, 10) == "x" * 9 + "…"
    assert one_line("ls" + " " * 100 + "; rm -rf ~", 10) == "ls…"
    assert one_line("ls" + " " * 100, 10) == "ls"


def test_nothing_in_a_text_ends_its_fence() -> None:
    assert fenced("1 + 1", "python") == "```python\n1 + 1\n```"
    assert fenced("a\n````\nb", "text") == "`````text\na\n````\nb\n`````"


def test_a_name_that_is_nearly_right_is_told_what_is_meant() -> None:
    assert did_you_mean("shpo", ["mail", "shop"]) == ". Did you mean `shop`?"
    assert did_you_mean("shop", ["mail"]) == ""
    assert did_you_mean("s" * 1000, ["s" * 200]) == "", "what is long is not compared"
    assert did_you_mean("shpo\u202e", ["shop\u202e"]) == ". Did you mean `shop<U+202E>`?"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Add two numbers.", "Add two numbers."),
        ("Delete an order. There is no undo.", "Delete an order."),
        ("Search, e.g. for a name\n  that is long! And more", "Search, e.g. for a name that is long!"),
        ("A title\r\n \r\nA text.", "A title"),
        ("\x1b[2JRun\u202e it? [y]es", "<U+001B>[2JRun<U+202E> it?"),
        ("", ""),
    ],
)
def test_first_sentence_is_one_visible_line(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
