from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.exceptions import SandboxConfigError
from jupyter_agentbox.headless.sandbox_config import read_sandbox_config, with_read_only


def test_mapping_and_file_say_the_same(tmp_path: Path) -> None:
    given = {"memory_limit": 1 << 30, "hidden": ["/data/keys"]}
    file = tmp_path / "box.json"
    file.write_text(json.dumps(given))

    expected = SandboxSettings(memory_limit=1 << 30, hidden=("/data/keys",))
    assert read_sandbox_config(given, work_dir=None) == expected
    # A file is what the kernel must not write, too.
    expected = replace(expected, read_only=(str(file),))
    assert read_sandbox_config(file, work_dir=None) == expected
    assert read_sandbox_config(str(file), work_dir=None) == expected
    assert read_sandbox_config(None, work_dir=None) == SandboxSettings()


def test_work_directory_can_be_given_in_either_place_and_in_both_if_it_is_one(tmp_path: Path) -> None:
    here = SandboxSettings(work_dir=str(tmp_path))

    assert read_sandbox_config(None, work_dir=tmp_path) == here
    assert read_sandbox_config({"work_dir": str(tmp_path)}, work_dir=None) == here
    assert read_sandbox_config({"work_dir": str(tmp_path)}, work_dir=tmp_path) == here
    with pytest.raises(SandboxConfigError, match="give only one of them"):
        read_sandbox_config({"work_dir": "/elsewhere"}, work_dir=tmp_path)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"unknown": 1}', '{"readable": 3}'])
def test_file_that_is_not_understood_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "box.json"
    if text is not None:
        file.write_text(text)

    with pytest.raises(SandboxConfigError, match=r"box\.json"):
        read_sandbox_config(file, work_dir=None)


def test_a_file_that_a_kernel_could_have_written_names_no_program(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for directory in (tmp_path, tmp_path / "work"):
        (directory / "box.json").write_text('{"bubblewrap": "/usr/bin/bwrap"}')
    (tmp_path / "link").symlink_to(tmp_path / "work" / "box.json")

    assert read_sandbox_config(tmp_path / "box.json", work_dir=tmp_path / "work").bubblewrap == "/usr/bin/bwrap"
    for file in (tmp_path / "work" / "box.json", tmp_path / "link"):
        with pytest.raises(SandboxConfigError, match="move the file"):
            read_sandbox_config(file, work_dir=tmp_path / "work")


def test_one_more_file_is_added_to_those_that_the_kernel_must_not_write(tmp_path: Path) -> None:
    config = with_read_only({"read_only": ["/a"]}, work_dir=None, read_only=tmp_path / "rules.json")

    assert read_sandbox_config(config, work_dir=None) == SandboxSettings(read_only=("/a", str(tmp_path / "rules.json")))
