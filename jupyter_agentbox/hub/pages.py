"""The page of a request in the Hub service, with the buttons of those who decide it. It runs no script."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, Final

from tornado import web

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Status
from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.core.text import visible
from jupyter_agentbox.services.approvals.handlers import MAX_REASON
from jupyter_agentbox.services.approvals.verdicts import Verdict

from .callers import asker_of
from .handlers import PageHandler
from .reviews import ENDS, ReviewRequest, approvers_of, deciding_groups

#: What the buttons of the pages send, and what it means.
ANSWERS: Final = {"allow": Answer.ALLOW_ONCE, "reject": Answer.REJECT_ONCE}
#: What another button of the page of one request sends, which allows it in an emergency.
_BREAK_GLASS: Final = "break_glass"


class RequestPageHandler(PageHandler):
    """A request, and the buttons of those who decide it."""

    async def get(self, request_id: str) -> None:
        """Show the request."""
        reviewed = await self.parts.reviews.get(request_id, self.caller)
        self.render(
            "request.html", caller=self.caller, prefix=self.parts.prefix, **view_of(reviewed, self.parts.reviews.now)
        )

    async def post(self, request_id: str) -> None:
        """Take the answer of a button, and show the request as it stands then."""
        given = self.get_body_argument("answer", "")
        answer = Answer.ALLOW_ONCE if given == _BREAK_GLASS else ANSWERS.get(given)
        reason = self.get_body_argument("reason", "")
        if answer is None or len(reason) > MAX_REASON:
            raise web.HTTPError(
                422, f"an answer is `allow` or `reject`, and a reason has up to {MAX_REASON} characters"
            )
        verdict = Verdict(answer=answer, digest=self.get_body_argument("digest", ""), reason=reason)
        await self.parts.reviews.decide(request_id, verdict, caller=self.caller, breaks_glass=given == _BREAK_GLASS)
        self.redirect(f"{self.parts.prefix}requests/{request_id}", status=303)


def row_of(reviewed: ReviewRequest, now: datetime) -> dict[str, Any]:
    """Return what a list says of a request. Odd characters from code, tools and people are spelled out."""
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
    """Return what the page of a request says."""
    request = reviewed.request
    call, decision, rule, approvers = request.call, request.decision, request.evaluation.rule, approvers_of(request)
    return {
        **row_of(reviewed, now),
        "digest": call.digest,
        "arguments": shown_arguments(request),
        "is_shortened": call.omitted is not None,
        "odd": warnings_of(request),
        "description": visible(request.tool.description),
        "rule": visible(rule.reason or str(rule)) if rule is not None else "",
        "is_pending": request.status is Status.PENDING,
        "votes": [visible(f"{vote.reviewer.name} has approved{_told(vote.reason)}") for vote in request.votes],
        "decided": "" if decision is None else visible(f"{decision.reviewer.in_words}{_told(decision.reason)}"),
        "error": visible(request.outcome.error) if request.outcome is not None else "",
        "may_break_glass": reviewed.may_break_glass,
        "needs_reason": approvers is not None and approvers.needs_reason,
        "refusal": visible(reviewed.refusal[:1].upper() + reviewed.refusal[1:]),
    }


def shown_arguments(request: ApprovalRequest) -> str:
    """Return the arguments as text, with odd characters spelled out; of long ones that are not kept, the beginning."""
    call = request.call
    return visible(call.omitted.head if call.omitted is not None else _indented(dict(call.arguments)))


def warnings_of(request: ApprovalRequest) -> list[str]:
    """Return what in the call looks like something else, in words."""
    call = request.call
    return [one.text for one in look_alikes(server=call.server, tool=call.tool, arguments=call.arguments)]


def span(time: timedelta) -> str:
    """Return a length of time in its largest units: seconds below two minutes, minutes below two hours."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def status_of(request: ApprovalRequest, now: datetime) -> str:
    """Say where a request stands, and for whom it waits now."""
    if request.status.value != "pending":
        outcome = request.outcome
        end = ENDS[request.status].removeprefix("was ").removeprefix("has ")
        return end if outcome is None else f"{end}, {outcome.state.value}"
    approvers = approvers_of(request)
    if approvers is None:
        return visible(f"waits for {asker_of(request)}")
    left = approvers.count - len(request.votes)
    others = sorted(deciding_groups(request, now) - {approvers.group})
    return visible(f"waits for {left} of {' or '.join((approvers.group, *others))}")


def _told_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


def _indented(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def _told(reason: str) -> str:
    return f": {reason}" if reason else ""
