from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_agentbox.core.sandbox import SandboxSettings
from jupyter_agentbox.exceptions import SandboxConfigError
from jupyter_agentbox.execution.sandbox_config import read_sandbox_config


def test_mapping_and_file_say_the_same(tmp_path: Path) -> None:
    given = {"memory_limit": 1 << 30, "hidden": ["/data/keys"]}
    file = tmp_path / "box.json"
    file.write_text(json.dumps(given))

    expected = SandboxSettings(memory_limit=1 << 30, hidden=("/data/keys",))
    assert read_sandbox_config(given, work_dir=None) == expected
    assert read_sandbox_config(file, work_dir=None) == expected
    assert read_sandbox_config(str(file), work_dir=None) == expected
    assert read_sandbox_config(None, work_dir=None) == SandboxSettings()


def test_work_directory_can_be_given_in_either_place_and_in_both_if_it_is_one(tmp_path: Path) -> None:
    here = SandboxSettings(work_dir=str(tmp_path))

    assert read_sandbox_config(None, work_dir=tmp_path) == here
    assert read_sandbox_config({"work_dir": str(tmp_path)}, work_dir=None) == here
    assert read_sandbox_config({"work_dir": str(tmp_path)}, work_dir=tmp_path) == here
    with pytest.raises(SandboxConfigError, match="give one of them"):
        read_sandbox_config({"work_dir": "/elsewhere"}, work_dir=tmp_path)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"unknown": 1}', '{"readable": 3}'])
def test_file_that_is_not_understood_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "box.json"
    if text is not None:
        file.write_text(text)

    with pytest.raises(SandboxConfigError, match=r"box\.json"):
        read_sandbox_config(file, work_dir=None)
