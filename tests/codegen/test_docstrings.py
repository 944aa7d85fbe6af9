from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.codegen.docstrings import as_source
from jupyter_agentbox.core.text import visible


@pytest.mark.parametrize("text", ['ends with "', '"""', '""""""', "\\", '\\"""', 'a\n"', "\\N{DASH}"])
def test_literal_has_the_text_as_its_value(text: str) -> None:
    assert ast.literal_eval(as_source(text)).strip() == text


@given(st.text(st.characters(exclude_categories=[])))
def test_literal_of_any_text_has_the_visible_text_as_its_value(text: str) -> None:
    lines = [line.rstrip() for line in visible(text).split("\n")]

    assert ast.literal_eval(as_source(text)).split("\n")[: len(lines)] == lines


def test_further_lines_are_indented() -> None:
    assert as_source("a\n\nb", "    ") == '"""a\n\n    b\n    """'
