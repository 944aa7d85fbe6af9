"""Where a call came from, as a user's server says: read from strangers."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Effect, Rule
from jupyter_agentbox.core.reported_origins import ORIGIN_KEY, ReportedOrigin, origin_from_json, origin_in

WHOLE = ReportedOrigin(
    request_id="r1",
    kernel_id="k1",
    notebook_path="work/a.ipynb",
    cell_id="c1",
    isolation="bubblewrap",
    has_own_settings=True,
)


@pytest.mark.parametrize("origin", [WHOLE, ReportedOrigin(request_id="r1")])
def test_what_is_written_is_read_again(origin: ReportedOrigin) -> None:
    assert origin_in({ORIGIN_KEY: origin.to_json()}) == origin


@pytest.mark.parametrize("value", [None, 1, [], "r1", {}, {"request_id": ""}, {"request_id": 7, "cell_id": "c1"}])
def test_what_names_no_request_is_none(value: Any) -> None:
    assert origin_from_json(value) is None
    assert origin_in(value) is None


def test_of_what_strangers_send_only_texts_are_taken_and_cut() -> None:
    sent = {
        "request_id": "r" * 2000,
        "kernel_id": 7,
        "notebook_path": ["a"],
        "cell_id": "",
        "isolation": {},
        "has_own_settings": 1,
    }
    assert origin_from_json(sent) == ReportedOrigin(request_id="r" * 1000)


def test_no_rule_takes_a_server_at_its_word() -> None:
    call = ToolCall(server="shop", tool="restock", arguments={}, origin=Origin(reported=WHOLE))
    sandboxed = Rule(server="shop", tool="*", effect=Effect.ALLOW, isolation=Isolation.BUBBLEWRAP)
    there = Rule(server="shop", tool="*", effect=Effect.ALLOW, notebook="work/*")
    assert not sandboxed.matches(call)
    assert not there.matches(call)


def test_it_makes_no_other_call() -> None:
    call = ToolCall(server="shop", tool="restock", arguments={})
    told = ToolCall(server="shop", tool="restock", arguments={}, origin=Origin(reported=WHOLE))
    assert told.digest == call.digest
