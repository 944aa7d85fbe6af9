"""Imports jsonschema without what this package does not need of it."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

#: Where it is installed, jsonschema takes the formats ``iri`` and ``iri-reference`` from it. Its import builds a parser
#: for the grammar of RFC 3987, which takes most of a second and 17 MB. Formats are not checked here.
_GRAMMAR: Final = "rfc3987_syntax"


def import_jsonschema() -> None:
    """Import jsonschema, if it is not yet, so that the parser for IRIs is built when something checks one."""
    if "jsonschema" in sys.modules or _GRAMMAR in sys.modules or find_spec(_GRAMMAR) is None:
        import_module("jsonschema")
        return
    later = ModuleType(_GRAMMAR)
    later.is_valid_syntax = _is_valid_syntax  # type: ignore[attr-defined]
    sys.modules[_GRAMMAR] = later
    try:
        import_module("jsonschema")
    finally:
        del sys.modules[_GRAMMAR]  # whoever imports it from now on gets the real one


def _is_valid_syntax(*arguments: Any) -> Any:
    return import_module(_GRAMMAR).is_valid_syntax(*arguments)
