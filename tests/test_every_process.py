"""What lets the processes of the tests start faster changes nothing of what they do afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = f"""
import gc, sys
usual = gc.get_threshold()
sys.path.insert(0, {str(Path(__file__).parent / "every_process")!r})
import quick_processes
assert gc.get_threshold() != usual
kept = [[] for _ in range(400_000)]
assert gc.get_threshold() == usual
"""


def test_garbage_is_looked_for_as_ever_after_the_first_time() -> None:
    # `-S`: the virtual environment may have it imported already.
    subprocess.run([sys.executable, "-I", "-S", "-c", CODE], check=True)
