from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from jupyter_agentbox.core.audit import GENESIS, Head, Part

FIRST = Head().then(Part.DECIDED, "r1", "d1")


def test_each_entry_has_the_hash_of_the_one_before_it() -> None:
    second = Head(FIRST.number, FIRST.hash).then(Part.ENDED, "r1", "d2")

    assert (FIRST.number, FIRST.previous) == (1, GENESIS)
    assert (second.number, second.previous) == (2, FIRST.hash)
    assert FIRST.is_sound
    assert second.is_sound


def test_a_hash_is_what_the_reference_says() -> None:
    text = json.dumps([1, "decided", "r1", "d1", GENESIS], separators=(",", ":"))

    assert hashlib.sha256(text.encode()).hexdigest() == FIRST.hash


@pytest.mark.parametrize(
    ("field", "value"),
    [("number", 2), ("part", "ended"), ("request_id", "r2"), ("digest", "d2"), ("previous", "x"), ("hash", "x")],
)
def test_an_entry_that_was_changed_is_not_sound(field: str, value: Any) -> None:
    assert not replace(FIRST, **{field: value}).is_sound


def test_what_no_entry_can_hold_is_not_sound() -> None:
    damaged: Any = b"r1"
    assert not replace(FIRST, request_id=damaged).is_sound
    assert not replace(FIRST, request_id="\ud800").is_sound


def test_a_head_is_read_as_it_was_printed() -> None:
    head = Head(FIRST.number, FIRST.hash)
    assert Head.parse(f" {head}\n") == head


@pytest.mark.parametrize("text", ["", "12", f"{FIRST.hash}", f"x:{FIRST.hash}", f"1:{FIRST.hash}0", f"1:{'G' * 64}"])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a head"):
        Head.parse(text)
