"""The program of the reference runs as it stands there."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from .conftest import MakeAgent

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "agent.md"


def test_the_example_of_the_reference_gives_what_it_says(make_agent: MakeAgent) -> None:  # its directories
    [program] = re.findall(r"^```python\n(.*?)^```", REFERENCE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    said = io.StringIO()
    with redirect_stdout(said):
        exec(program, {})  # it is ours

    assert said.getvalue() == "It is 42.\n"
