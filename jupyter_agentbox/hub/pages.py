"""The pages of the Hub service: what waits for a person, and each request with its answer. They run no script."""

from __future__ import annotations

import json
from typing import Any, Final

from tornado import web

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest
from jupyter_agentbox.core.look_alikes import look_alikes
from jupyter_agentbox.core.text import visible
from jupyter_agentbox.services.approvals.handlers import MAX_REASON
from jupyter_agentbox.services.approvals.manager import Verdict

from .callers import asker_of
from .handlers import PageHandler
from .reviews import ReviewRequest, approvers_of

_MOST_OWN: Final = 50
_ANSWERS: Final = {"allow": Answer.ALLOW_ONCE, "reject": Answer.REJECT_ONCE}


class InboxHandler(PageHandler):
    """What waits for the person who looks, and their own requests."""

    async def get(self) -> None:
        """Show both."""
        reviews = self.parts.reviews
        pending = await reviews.pending(self.caller)
        self.render(
            "inbox.html",
            caller=self.caller,
            prefix=self.parts.prefix,
            pending=[row_of(one) for one in pending],
            own=[row_of(one) for one in await reviews.own(self.caller, limit=_MOST_OWN)],
        )


class RequestPageHandler(PageHandler):
    """A request, and the buttons of those who decide it."""

    async def get(self, request_id: str) -> None:
        """Show it."""
        reviewed = await self.parts.reviews.get(request_id, self.caller)
        self.render("request.html", caller=self.caller, prefix=self.parts.prefix, **view_of(reviewed))

    async def post(self, request_id: str) -> None:
        """Take the answer of a button, and show the request as it stands then."""
        answer = _ANSWERS.get(self.get_body_argument("answer", ""))
        reason = self.get_body_argument("reason", "")
        if answer is None or len(reason) > MAX_REASON:
            raise web.HTTPError(
                422, f"an answer is `allow` or `reject`, and a reason has up to {MAX_REASON} characters"
            )
        verdict = Verdict(answer=answer, digest=self.get_body_argument("digest", ""), reason=reason)
        await self.parts.reviews.decide(request_id, verdict, caller=self.caller)
        self.redirect(f"{self.parts.prefix}requests/{request_id}", status=303)


def row_of(reviewed: ReviewRequest) -> dict[str, Any]:
    """Return what a list says of a request. What comes from code, tools and persons has its odd characters shown."""
    request = reviewed.request
    return {
        "id": request.id,
        "name": visible(request.call.qualified_name),
        "asked_by": visible(asker_of(request)),
        "status": status_of(request),
        "created_at": request.created_at.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "may_decide": not reviewed.refusal,
    }


def view_of(reviewed: ReviewRequest) -> dict[str, Any]:
    """Return what the page of a request says."""
    request = reviewed.request
    call, decision, rule = request.call, request.decision, request.evaluation.rule
    shown = call.omitted.head if call.omitted is not None else _indented(dict(call.arguments))
    odd = look_alikes(server=call.server, tool=call.tool, arguments=call.arguments)
    return {
        **row_of(reviewed),
        "digest": call.digest,
        "arguments": visible(shown),
        "is_shortened": call.omitted is not None,
        "odd": [one.text for one in odd],
        "description": visible(request.tool.description),
        "rule": visible(rule.reason or str(rule)) if rule is not None else "",
        "expires_at": request.expires_at.strftime("%Y-%m-%d %H:%M:%S UTC") if request.expires_at else "",
        "votes": [visible(f"{vote.reviewer.name} has approved{_told(vote.reason)}") for vote in request.votes],
        "decided": "" if decision is None else visible(f"{decision.reviewer.name}{_told(decision.reason)}"),
        "error": visible(request.outcome.error) if request.outcome is not None else "",
        "refusal": visible(reviewed.refusal),
    }


def status_of(request: ApprovalRequest) -> str:
    """Say where a request stands, and for whom it waits."""
    if request.status.value != "pending":
        outcome = request.outcome
        return request.status.value if outcome is None else f"{request.status.value}, {outcome.state.value}"
    approvers = approvers_of(request)
    if approvers is None:
        return visible(f"waits for {asker_of(request)}")
    left = approvers.count - len(request.votes)
    return visible(f"waits for {left} of {approvers.group}")


def _indented(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def _told(reason: str) -> str:
    return f": {reason}" if reason else ""
