"""Analyzes code in a separate process, which can be killed whatever the code makes Python's parser do.

It reads requests and writes answers, one line of JSON each. It ends when it computes for longer than a request may
take, and when its standard input closes.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

from jupyter_agentbox.analysis import ruff
from jupyter_agentbox.analysis.findings import NO_RUFF, NOT_ANALYSED, SYNTAX_ERROR, DomainCalls, Severity
from jupyter_agentbox.analysis.source import Source, read, unseen_characters
from jupyter_agentbox.analysis.syntax_tree import places
from jupyter_agentbox.processes.worker_loop import answer_requests

#: Bytes of memory that all of it may take.
_MEMORY: Final = 2 * 1024**3
#: Findings that are told, and no more: nobody reads on.
MOST_FINDINGS: Final = 200
#: Beginnings of codes that weigh less, or more, than a warning.
_SEVERITIES: Final = {
    SYNTAX_ERROR: Severity.ERROR,
    "AB301": Severity.INFO,
    "AB303": Severity.INFO,
    "AB401": Severity.INFO,
    "S101": Severity.INFO,
}

Found = dict[str, Any]


def look_at(code: str, domains: list[dict[str, Any]], ruff_path: str | None) -> list[Found]:
    """Return the findings in a piece of code."""
    try:
        source = read(code)
    except SyntaxError as error:
        return [_found(SYNTAX_ERROR, f"SyntaxError: {error.msg}", error.lineno or 1, error.offset or 1)]
    except UnicodeEncodeError:
        return [_found(SYNTAX_ERROR, "SyntaxError: the code contains characters that cannot be stored in a file", 1, 1)]
    except ValueError as error:
        return [_found(SYNTAX_ERROR, f"SyntaxError: {error}", 1, 1)]
    except (RecursionError, MemoryError, RuntimeError):
        return [
            _found(NOT_ANALYSED, "the code is nested too deeply, or has too many magic commands, to be analyzed", 1, 1)
        ]
    known = tuple(
        DomainCalls(name=each["name"], reads=tuple(each["reads"]), writes=tuple(each["writes"])) for each in domains
    )
    found = [*_ours(source, known), *_unseen(code), *_ruffs(source, ruff_path)]
    if len(found) > MOST_FINDINGS:
        rest = f"there are {len(found) - MOST_FINDINGS:,} more findings, which are not listed"
        found = [*found[:MOST_FINDINGS], _found(NOT_ANALYSED, rest, 1, 1)]
    return found


def _ours(source: Source, domains: tuple[DomainCalls, ...]) -> list[Found]:
    lines = source.text.split("\n")
    found = [
        _found(place.code, place.message, source.line(place.line), _character(lines, place.line, place.column))
        for place in places(source.tree, domains)
    ]
    if source.may_be_automagic:
        found.append(_found("AB206", "IPython takes this line for a command, though it could be Python", 1, 1))
    return found


def _unseen(code: str) -> list[Found]:
    message = "has the character {}, which hides or reverses the text around it"
    return [_found("AB105", message.format(name), line, column) for line, column, name in unseen_characters(code)]


def _ruffs(source: Source, path: str | None) -> list[Found]:
    if path is None:
        return [_found(NO_RUFF, ruff.MISSING, 1, 1)]
    try:
        return [_ruff_finding(source, each) for each in ruff.diagnostics(path, source.plain)]
    except ruff.RuffError as error:
        return [_found(NO_RUFF, str(error), 1, 1)]


def _ruff_finding(source: Source, diagnostic: Found) -> Found:
    place = diagnostic.get("location") or {}
    # Where the lines are those of a program that was written anew, no place is better than a wrong one.
    line = source.line(int(place.get("row", 1))) if source.is_in_place else 1
    column = int(place.get("column", 1)) if source.is_in_place else 1
    code = diagnostic.get("code")
    if not isinstance(code, str) or code == "invalid-syntax":
        return _found(NO_RUFF, f"ruff cannot read the code: {diagnostic.get('message')}", line, column)
    return _found(code, str(diagnostic.get("message")), line, column)


def _found(code: str, message: str, line: int, column: int) -> Found:
    severity = _SEVERITIES.get(code, Severity.WARNING).value
    return {"code": code, "severity": severity, "message": message[:500], "line": line, "column": max(column, 1)}


def _character(lines: list[str], line: int, offset: int) -> int:
    """Return the column in characters, from 1, of an offset in bytes."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1


def answer(request: dict[str, Any]) -> dict[str, list[Found]]:
    """Return what is found in code."""
    return {"findings": look_at(request["code"], request["domains"], request["ruff"])}


def main() -> None:
    """Answer until the end of standard input."""
    warnings.simplefilter("ignore")  # Python warns about invalid escapes in what it parses
    answer_requests(answer, memory=_MEMORY)


if __name__ == "__main__":
    main()
