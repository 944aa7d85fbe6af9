"""The ids that the product makes."""

from __future__ import annotations

import pytest

from jupyter_agentbox.system import RandomIds


def test_no_id_begins_as_an_option_of_a_command_or_a_formula_of_a_spreadsheet_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = iter(["-dash", "--dash", "_line-", "word"])
    monkeypatch.setattr("secrets.token_urlsafe", lambda _size: next(drawn))
    ids = RandomIds()
    assert [ids.new(), ids.new()] == ["_line-", "word"]
