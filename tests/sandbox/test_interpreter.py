from __future__ import annotations

import sys
from pathlib import Path

from jupyter_agentbox.sandbox.server.interpreter import prefixes_of, readable_of


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


def test_of_a_prefix_that_only_has_links_in_the_home_directory_the_links_are_seen(tmp_path: Path) -> None:
    local = tmp_path / ".local"
    for name in ("bin/python3", "bin/tool", "share/tool/auth.json", "lib/python3/site-packages/tool.py"):
        (local / name).parent.mkdir(parents=True, exist_ok=True)
        (local / name).touch()

    assert readable_of(local, home=tmp_path) == (local / "bin" / "python3",)


def test_of_a_python_among_other_programs_nothing_else_is_seen(tmp_path: Path) -> None:
    local = tmp_path / ".local"
    for name in ("bin/python3", "bin/tool", "share/tool/auth.json", "lib/python3/os.py", "lib/tool/key"):
        (local / name).parent.mkdir(parents=True, exist_ok=True)
        (local / name).touch()

    assert readable_of(local, home=tmp_path) == (local / "bin" / "python3", local / "lib" / "python3")
    assert readable_of(local, home=tmp_path / "other") == (local,)


def test_a_python_of_its_own_in_the_home_directory_shows_its_programs_and_libraries(tmp_path: Path) -> None:
    prefix = tmp_path / "pythons" / "3"
    for name in ("bin/python3", "lib/python3/os.py", "share/terminfo/x", "notes"):
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).touch()

    assert readable_of(prefix, home=tmp_path) == (prefix / "bin", prefix / "lib", prefix / "share" / "terminfo")


def test_an_environment_in_the_home_directory_is_seen_whole(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()

    assert readable_of(tmp_path / "env", home=tmp_path) == (tmp_path / "env",)
