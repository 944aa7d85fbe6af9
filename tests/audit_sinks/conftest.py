"""What tests of several audit sinks use."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest


@pytest.fixture
def fill_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after which the disk takes 3 bytes, refuses the next ones, and then has room again."""
    write, rooms = os.write, [3, 0]

    def full_disk(descriptor: int, data: bytes) -> int:
        if not rooms:
            return write(descriptor, data)
        if not (room := rooms.pop(0)):
            raise OSError("no space left")
        return write(descriptor, data[:room])

    return lambda: monkeypatch.setattr("jupyter_agentbox.audit_sinks.files.os.write", full_disk)
