from __future__ import annotations

from pathlib import Path

from .scheduling import FIRST

ROOT = Path(__file__).parents[1]


def test_folders_that_are_kept_together_or_put_first_are_there() -> None:
    assert [folder for folder in FIRST if not (ROOT / folder).is_dir()] == []
