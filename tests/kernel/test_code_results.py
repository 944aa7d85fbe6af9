"""What code left in `results`, as JSON."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.kernel.code_results import as_json

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(JSON)
def test_json_stays_as_it_is(value: Any) -> None:
    assert as_json(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (np.float64(1.5), 1.5),
        (np.int32(2), 2),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([1.0, float("nan")]), [1.0, None]),
        (pd.DataFrame({"a": [1, 2]}), {"a": [1, 2]}),
        (pd.Timestamp("2026-10-01"), "2026-10-01T00:00:00"),
        (datetime(2026, 10, 1, 12), "2026-10-01T12:00:00"),  # noqa: DTZ001  # as code leaves it
        (date(2026, 10, 1), "2026-10-01"),
        ((1, {2}), [1, [2]]),
        (OrderedDict({1: "one", None: 2}), {"1": "one", "None": 2}),
        (Decimal("1.5"), "Decimal('1.5')"),
        (Path("a"), f"{Path('a')!r}"),
        (np.float64, repr(np.float64)),
    ],
    ids=repr,
)
def test_other_values_have_a_form_in_json(value: Any, expected: Any) -> None:
    assert as_json(value) == expected
    json.dumps(as_json(value), allow_nan=False)


def test_what_contains_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)

    json.dumps(as_json(value))


def test_an_object_that_lies_about_what_it_can_do_is_text() -> None:
    class Liar:
        def tolist(self) -> Any:
            return self

        def __repr__(self) -> str:
            return "a liar"

    assert as_json(Liar()) == "a liar"
