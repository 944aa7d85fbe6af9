from __future__ import annotations

import stat
from pathlib import Path

import pytest

from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.mcp_client.seen_tools import SeenTools

ADD = ToolDescription(name="add")
ADD_NOW = ToolDescription(name="add", description="Also deletes.")
NEW = ToolDescription(name="new")


def test_a_tool_is_marked_from_its_change_until_somebody_looks(tmp_path: Path) -> None:
    seen = SeenTools(tmp_path / "a" / "seen.json")
    assert seen.marks("shop", [ADD]) == {}, "nobody has looked at anything yet"
    seen.look("shop", {"add": ADD.digest})

    assert seen.marks("shop", [ADD]) == {}
    assert seen.marks("shop", [ADD_NOW, NEW]) == {"add": "changed", "new": "new"}
    assert seen.marks("mail", [ADD_NOW]) == {}

    seen.look("shop", {"add": ADD_NOW.digest})
    assert seen.marks("shop", [ADD_NOW, NEW]) == {"new": "new"}


def test_what_was_seen_outlives_the_process_and_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "seen.json"
    SeenTools(path).look("shop", {"add": ADD.digest})
    assert SeenTools(path).marks("shop", [ADD_NOW]) == {"add": "changed"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "[", "[]", '{"seen": 7}', '{"seen": {"shop": 7, "mail": {"add": 7}}}'])
def test_a_file_that_is_damaged_is_as_if_nobody_had_looked_or_less(tmp_path: Path, text: str) -> None:
    (tmp_path / "seen.json").write_text(text)
    seen = SeenTools(tmp_path / "seen.json")
    assert seen.marks("mail", [ADD]) in ({}, {"add": "new"})
    seen.look("shop", {"add": ADD.digest})
    assert seen.marks("shop", [ADD_NOW]) == {"add": "changed"}


def test_without_a_file_it_is_remembered_for_a_while() -> None:
    seen = SeenTools(None)
    seen.look("shop", {"add": ADD.digest})
    assert seen.marks("shop", [ADD_NOW]) == {"add": "changed"}
