"""The Hub service's page of one request, with buttons for the people who can decide it. It runs no script."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, Final

from tornado import web

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Status
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.local_calls import is_local
from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.core.text import counted, visible
from jupyter_agentbox.services.approvals.handlers import MAX_REASON
from jupyter_agentbox.services.approvals.verdicts import Verdict

from .callers import asker_of
from .handlers import PageHandler
from .reviews import ENDS, ReviewRequest, approvers_of, deciding_groups

#: The values that the pages' buttons send, with their answers.
ANSWERS: Final = {"allow": Answer.ALLOW_ONCE, "reject": Answer.REJECT_ONCE}
#: Lists cut off longer texts, in characters. A request's own page shows all of them.
BRIEF: Final = 300
#: The value of the button that allows a request in an emergency.
_BREAK_GLASS: Final = "break_glass"


class RequestPageHandler(PageHandler):
    """Shows a request and takes decisions on it."""

    async def get(self, request_id: str) -> None:
        """Show the request."""
        reviewed = await self.parts.reviews.get(request_id, self.caller)
        self.render(
            "request.html", caller=self.caller, prefix=self.parts.prefix, **view_of(reviewed, self.parts.reviews.now)
        )

    async def post(self, request_id: str) -> None:
        """Apply the decision of a button, and show the request as it is afterwards."""
        given = self.get_body_argument("answer", "")
        answer = Answer.ALLOW_ONCE if given == _BREAK_GLASS else ANSWERS.get(given)
        reason = self.get_body_argument("reason", "")
        if answer is None or len(reason) > MAX_REASON:
            raise web.HTTPError(
                422, f"the answer must be `allow` or `reject`, and the reason at most {MAX_REASON} characters long"
            )
        verdict = Verdict(answer=answer, digest=self.get_body_argument("digest", ""), reason=reason)
        await self.parts.reviews.decide(request_id, verdict, caller=self.caller, breaks_glass=given == _BREAK_GLASS)
        self.redirect(f"{self.parts.prefix}requests/{request_id}", status=303)


def row_of(reviewed: ReviewRequest, now: datetime) -> dict[str, Any]:
    """Return what a list shows of a request. Odd characters from code, tools and people are spelled out."""
    request = reviewed.request
    return {
        "id": request.id,
        "name": visible(request.call.qualified_name),
        "asked_by": visible(asker_of(request)),
        "status": status_of(request, now),
        "created_at": _told_time(request.created_at),
        "ago": span(now - request.created_at),
        "expires_at": _told_time(request.expires_at) if request.expires_at else "",
        "left": span(request.expires_at - now) if request.expires_at else "",
        "may_decide": not reviewed.refusal,
        "may_reject": reviewed.may_reject,
    }


def view_of(reviewed: ReviewRequest, now: datetime) -> dict[str, Any]:
    """Return what a request's page shows."""
    request = reviewed.request
    call, decision, rule, approvers = request.call, request.decision, request.evaluation.rule, approvers_of(request)
    return {
        **row_of(reviewed, now),
        "digest": call.digest,
        "arguments": visible(arguments_text(request)),
        "is_shortened": call.omitted is not None,
        "odd": warnings_of(request),
        "description": visible(request.tool.description),
        "place": visible(_place_of(request)),
        "runs": visible(_command_or_address_of(request)),
        "rule": visible(rule.reason or str(rule)) if rule is not None else "",
        "is_pending": request.status is Status.PENDING,
        "votes": [visible(f"{vote.reviewer.name} has approved{_with_reason(vote.reason)}") for vote in request.votes],
        "decided": "" if decision is None else visible(f"{decision.reviewer.in_words}{_with_reason(decision.reason)}"),
        "error": visible(request.outcome.error) if request.outcome is not None else "",
        "may_break_glass": reviewed.may_break_glass,
        "needs_reason": approvers is not None and approvers.needs_reason,
        "refusal": visible(reviewed.refusal[:1].upper() + reviewed.refusal[1:]),
    }


def _place_of(request: ApprovalRequest) -> str:
    """Return where a call of a user's own tool runs and comes from, as the user's server says; otherwise nothing."""
    if not is_local(request.call):
        return ""
    origin, asker = request.call.origin, asker_of(request)
    where = f"the notebook {origin.notebook_path}" if origin.notebook_path else "no notebook"
    sandbox = "not sandboxed" if origin.isolation is Isolation.NONE else f"sandboxed with {origin.isolation.value}"
    settings = ", with its user's own settings" if origin.has_own_settings else ""
    return f"on the server of {asker}, which says that the call comes from {where}, {sandbox}{settings}"


def _command_or_address_of(request: ApprovalRequest) -> str:
    """Return the command or address behind a user's own tool, as the user's server says; otherwise nothing."""
    reported = request.call.origin.reported
    return reported.runs if reported is not None and is_local(request.call) else ""


def arguments_text(request: ApprovalRequest, *, indent: int | None = 2) -> str:
    """Return the arguments as JSON; only the beginning if the rest is not kept.

    Parameters
    ----------
    request : ApprovalRequest
        The request.
    indent : int or None
        By how many spaces each level is indented; with ``None``, all is in one line.
    """
    call = request.call
    if call.omitted is not None:
        return call.omitted.head
    return json.dumps(dict(call.arguments), indent=indent, ensure_ascii=False)


def listed_arguments(request: ApprovalRequest) -> tuple[str, bool]:
    """Return the arguments as lists show them, in one line, and whether that is all of them."""
    text = arguments_text(request, indent=None)
    if request.call.omitted is not None:
        return f"{visible(text[:BRIEF])}…", False
    return brief(text), len(text) <= BRIEF


def brief(text: str) -> str:
    """Return the beginning of a text, with odd characters spelled out and a mark if there is more."""
    return visible(text) if len(text) <= BRIEF else f"{visible(text[:BRIEF])}…"


def warnings_of(request: ApprovalRequest) -> list[str]:
    """Return a warning for each part of the call that looks like something else."""
    call = request.call
    return [one.text for one in look_alikes(server=call.server, tool=call.tool, arguments=call.arguments)]


def span(time: timedelta) -> str:
    """Return a duration as text: in seconds below two minutes, in minutes below two hours, above in hours."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def status_of(request: ApprovalRequest, now: datetime) -> str:
    """Return a request's status as text, with the people it waits for."""
    if request.status is not Status.PENDING:
        end = ENDS[request.status].removeprefix("was ").removeprefix("has ")
        return f"{end}{_then(request)}"
    approvers = approvers_of(request)
    if approvers is None:
        return visible(f"waits for {asker_of(request)}")
    left = approvers.count - len(request.votes)
    others = sorted(deciding_groups(request, now) - {approvers.group})
    return visible(f"waits for {counted(left, 'approval')} by {' or '.join((approvers.group, *others))}")


def _then(request: ApprovalRequest) -> str:
    """Return what happened after an approval, to follow a status; empty if there was none."""
    if request.status is not Status.APPROVED:
        return ""
    if request.outcome is None:
        return ", not run yet"
    if request.has_not_run:
        return ", but did not run"
    if is_local(request.call):
        return ", to run on the user's server"
    return f", {request.outcome.state.value}"


def _told_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


def _with_reason(reason: str) -> str:
    return f": {reason}" if reason else ""
