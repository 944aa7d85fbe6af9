"""What a terminal shows of calls: requests, edits, and what rules decided. Arguments and descriptions are untrusted."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from typing import Any, Final

from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.core.policy import Rule
from jupyter_agentbox.core.risks import RiskOfCall, risk_of_call
from jupyter_agentbox.core.signatures import not_in_full, signature
from jupyter_agentbox.core.text import counted, first_sentence, one_line, visible

from .requests import ApprovalRequest

#: Begins each line of a value, so that no value can look like a question or an answer.
_MARGIN: Final = "  │ "
#: A text longer than this is shown as it is, line by line, and not as a JSON string.
_LONG: Final = 60
_NARROWEST: Final = 20


def described(request: ApprovalRequest, *, columns: int) -> str:
    """Return what a person has to know of a request: the call, its risk, the tool, and all of its arguments.

    Parameters
    ----------
    request : ApprovalRequest
        The request.
    columns : int
        The width of the terminal.
    """
    name, arguments = qualified_name(request), request.tool_args
    risk = risk_of(request)
    odd = look_alikes(server=request.server_name, tool=request.tool_name, arguments=arguments)
    lines = [
        signature(name, arguments),
        f"  Risk: {risk.text}{' (claimed by the server, not verified)' if risk.is_claim else ''}",
        *_words(request, risk),
        f"  The request came from {_kernel(request.isolation)}.",
        *(f"  Look closely: {one_line(one.text, 1_000)}" for one in odd),
    ]
    if unshown := not_in_full(name, arguments):
        lines += ["  In full:", *_in_margin(_written({one: arguments[one] for one in unshown}), columns)]
    return "\n".join(lines)


def difference(asked: Mapping[str, Any], edited: Mapping[str, Any], *, columns: int) -> str:
    """Return the lines in which edited arguments differ, with ``-`` and ``+`` as in a patch; empty if none does."""
    before, after = list(_written(asked)), list(_written(edited))
    head_lines = 2
    changed = list(unified_diff(before, after, lineterm="", n=1))[head_lines:]
    return "\n".join(_in_margin((line for line in changed if not line.startswith("@@")), columns))


def decided_unasked(stored: StoredRequest) -> str:
    """Return a line about a call that a rule or a grant decided; empty for any other call."""
    decision, evaluation = stored.decision, stored.evaluation
    if stored.status not in (Status.APPROVED, Status.REJECTED):
        return ""
    rule, grant = evaluation.rule, evaluation.grant
    if decision is not None:
        rule, grant = decision.rule, decision.grant
    if rule is None and grant is None:
        return ""
    verb = "allowed" if stored.status is Status.APPROVED else "denied"
    by = f"rule {_place(rule)}" if rule is not None else "your answer for this tool in this run"
    call = stored.effective_call
    return one_line(f"{verb} by {by}: {signature(call.qualified_name, call.arguments)}", 1_000)


def qualified_name(request: ApprovalRequest) -> str:
    """Return ``server.tool``, untrusted."""
    return f"{request.server_name}.{request.tool_name}"


def risk_of(request: ApprovalRequest) -> RiskOfCall:
    """Return the risk of a request's call."""
    return risk_of_call(qualified_name(request), request.stored.tool.annotations)


def _words(request: ApprovalRequest, risk: RiskOfCall) -> Iterator[str]:
    rule = request.stored.evaluation.rule
    if sentence := first_sentence(request.description):
        yield f"  {sentence}" if risk.is_own else f"  Server's words: “{_unquoted(sentence)}”"
    if rule is not None and rule.reason:
        yield f"  Rule's words: “{_unquoted(one_line(rule.reason))}”"


def _unquoted(text: str) -> str:
    """Return a text that cannot end its quotation."""
    return text.translate(str.maketrans("“”", "''"))


def _kernel(isolation: str) -> str:
    return {
        Isolation.NONE.value: "a plain kernel",
        Isolation.REMOTE.value: "a kernel on another machine",
    }.get(isolation, f"a sandbox ({isolation})")


def _place(rule: Rule) -> str:
    place = f" ({rule.file}, line {rule.line})" if rule.file else f" of the {rule.layer.value}"
    return f"{rule.server}.{rule.tool}{place}"


def _written(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of arguments in full: long texts as they are, everything else as JSON."""
    for name, value in arguments.items():
        if isinstance(value, str) and ("\n" in value or len(value) > _LONG):
            yield f"{one_line(name)}, {counted(len(value), 'character')}:"
            yield from (f"  {line}" for line in visible(value).split("\n"))
        else:
            text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
            yield from visible(f"{one_line(name)} = {text}").split("\n")


def _in_margin(lines: Iterable[str], columns: int) -> Iterator[str]:
    """Yield lines with a margin, also before what does not fit into the line."""
    width = max(columns - len(_MARGIN) - 1, _NARROWEST)
    for line in lines:
        yield from (f"{_MARGIN}{part}" for part in _parts(line, width))


def _parts(line: str, width: int) -> Iterator[str]:
    part, used = "", 0
    for char in line:
        cells = 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if used + cells > width:
            yield part
            part, used = "", 0
        part, used = part + char, used + cells
    yield part
