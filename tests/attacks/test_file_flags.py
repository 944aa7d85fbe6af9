from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "set the flags of a file that can only be read, by a call on its descriptor",
    plain=None,
    control="test_whoever_may_read_a_file_of_his_own_sets_its_flags",
)


def attack(facts: dict[str, Any]) -> Any:
    import array
    import fcntl

    get_flags, set_flags, no_dump = 0x80086601, 0x40086602, 0x40
    if "file" not in facts:  # the kernel's own, which it can only read
        from ipykernel.connect import get_connection_file

        facts["file"] = get_connection_file()
    with open(facts["file"]) as file:
        flags = array.array("l", [0])
        fcntl.ioctl(file, get_flags, flags)
        flags[0] ^= no_dump
        fcntl.ioctl(file, set_flags, flags)
        flags[0] ^= no_dump
        fcntl.ioctl(file, set_flags, flags)
    return "set"


def test_flags_stay_as_they_were(stage: Stage) -> None:
    stage.expect(ATTACK, attack)


def test_whoever_may_read_a_file_of_his_own_sets_its_flags(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("these calls are Linux's")
    (tmp_path / "file").touch()
    try:
        done = attack({"file": str(tmp_path / "file")})
    except OSError as error:
        pytest.skip(f"this file system has no flags: {error}")

    assert done == "set"
