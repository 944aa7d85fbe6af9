"""What messages cost, estimated without reading them."""

from __future__ import annotations

import json
import sys

import pytest

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.protocol import sizes
from jupyter_agentbox.protocol.sizes import VALUE_SIZE, ValueCounter, count_values, weight, weight_of


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (7, 0),
        ([], 1),
        ([1, 2, 3], 3),
        ({"a": 1, "b": [1, 2]}, 4),
        ([[]] * 5, 10),
    ],
)
def test_values_are_counted_by_what_separates_them(value: JsonValue, count: int) -> None:
    assert count_values(json.dumps(value).encode()) == count


def test_where_there_seem_to_be_too_many_what_is_in_strings_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "MAX_VALUES", 10)
    value = [1, 'a,b,[c\\", {"\\', "\\\\", ",,,,,,,,,,,,", 2]
    assert count_values(json.dumps(value).encode()) == 5


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_values_are_counted_however_a_text_is_cut(size: int) -> None:
    text = json.dumps([1, 'a,b,[c\\", {"\\', "\\\\", "\\", {"x": [2, 3]}, ",,,,", 4]).encode()
    counter = ValueCounter()
    for start in range(0, len(text), size):
        counter.feed(text[start : start + size])
    assert counter.count == count_values(text, most=5) == 10


def test_strings_without_end_are_values_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "MAX_VALUES", 10)
    assert count_values(json.dumps(["x,"] * 100).encode()) >= 100


@pytest.mark.parametrize(
    "value", [[[]] * 10_000, [{}] * 10_000, ["ab"] * 10_000, [1.5] * 10_000, "x" * 10_000, [{"a": 1}] * 10_000]
)
def test_no_message_takes_much_more_memory_than_it_weighs(value: JsonValue) -> None:
    def real(item: JsonValue) -> int:
        inner = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []
        return sys.getsizeof(item) + sum(map(real, inner))

    read = json.loads(json.dumps(value))
    assert real(read) < 2.5 * weight(json.dumps(value).encode())
    assert real(read) < 3.5 * weight_of(read)


def test_no_more_is_weighed_than_needed() -> None:
    assert VALUE_SIZE <= weight_of([[]] * 1_000_000, most=100) < 1000
