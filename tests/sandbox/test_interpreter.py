from __future__ import annotations

import sys
from pathlib import Path

from jupyter_agentbox.sandbox.interpreter import prefixes_of


def test_this_interpreter_has_its_environment_and_what_it_was_made_from() -> None:
    found = {path.resolve() for path in prefixes_of(Path(sys.executable))}

    assert {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()} <= found


def test_an_environment_names_its_home_and_links_are_followed(tmp_path: Path) -> None:
    for name in ("python/bin", "link-farm/bin", "project/.venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "python" / "bin" / "python3").touch()
    (tmp_path / "link-farm" / "bin" / "python3").symlink_to(tmp_path / "python" / "bin" / "python3")
    (tmp_path / "project" / ".venv" / "bin" / "python3").symlink_to(tmp_path / "link-farm" / "bin" / "python3")
    (tmp_path / "project" / ".venv" / "pyvenv.cfg").write_text(f"home = {tmp_path / 'link-farm' / 'bin'}\n")

    assert prefixes_of(tmp_path / "project" / ".venv" / "bin" / "python3") == (
        tmp_path / "project" / ".venv",
        tmp_path / "link-farm",
        tmp_path / "python",
    )
