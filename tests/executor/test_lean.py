from __future__ import annotations

import subprocess
import sys

import pytest

IRI = """
import jsonschema
check = jsonschema.FormatChecker().conforms
print(check("http://ä/", "iri"), check("ä b", "iri"))
"""
LEAN = "import sys; from jupyter_agentbox.executor.lean import import_jsonschema; import_jsonschema()\n"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_parser_that_nobody_uses_is_not_built() -> None:
    assert run(LEAN + "print('lark' in sys.modules, 'rfc3987_syntax' in sys.modules)") == "False False\n"


def test_whoever_checks_an_iri_gets_what_they_would_have_got() -> None:
    assert run(LEAN + IRI) == run(IRI)


@pytest.mark.parametrize("before", ["import jsonschema; ", "import rfc3987_syntax; "])
def test_what_is_imported_already_stays_as_it_is(before: str) -> None:
    pytest.importorskip("rfc3987_syntax")
    same = "m = sys.modules.get('rfc3987_syntax'); import_jsonschema(); print(sys.modules.get('rfc3987_syntax') is m)"
    first = "import sys; from jupyter_agentbox.executor.lean import import_jsonschema; "
    assert run(before + first + same) == "True\n"
