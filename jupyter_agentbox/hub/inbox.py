"""The pages that list waiting requests and take decisions on several at once. They run no script."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from tornado import web

from jupyter_agentbox.core.text import visible
from jupyter_agentbox.exceptions import AgentBoxError
from jupyter_agentbox.services.approvals.handlers import MAX_DECISIONS, MAX_REASON
from jupyter_agentbox.services.approvals.verdicts import Verdict

from .handlers import PageHandler
from .pages import ANSWERS, listed_arguments, row_of, warnings_of
from .reviews import ReviewFilter, ReviewRequest

_MOST_OWN: Final = 50


class InboxHandler(PageHandler):
    """Lists what waits for this person, what waits for others, and this person's own requests."""

    async def get(self) -> None:
        """Show the lists. The page reloads itself, except while requests are being selected."""
        reviews = self.parts.reviews
        wanted = self._filter()
        pending = await reviews.pending(self.caller, wanted)
        mine = sorted((one for one in pending if not one.refusal), key=_by_end)
        self.render(
            "inbox.html",
            caller=self.caller,
            prefix=self.parts.prefix,
            wanted=wanted,
            query=urlencode(wanted.to_json()),
            policy_problems=self._policy_problems(),
            group_problems=self._group_problems(),
            policy_version=self.parts.policy.version,
            has_sign_ins=bool(self.parts.policy.current.sign_in_servers),
            selects=bool(self.get_query_argument("several", "")) and bool(mine),
            mine=[self._listed(one) for one in mine],
            others=[self._listed(one) for one in pending if one.refusal],
            own=[row_of(one, reviews.now) for one in await reviews.own(self.caller, limit=_MOST_OWN)],
        )

    def _filter(self) -> ReviewFilter:
        given = {name: self.get_query_argument(name, "").strip() for name in ("asked_by", "server", "tool")}
        return ReviewFilter(**given)

    def _policy_problems(self) -> list[str]:
        """Return where the policy file is wrong. Only auditors see the messages, because these quote the file."""
        problems = self.parts.policy.problems
        if self.parts.reviews.is_auditor(self.caller):
            return [visible(str(one)) for one in problems]
        return [f"line {one.line}, column {one.column}" if one.line else "the whole file" for one in problems]

    def _group_problems(self) -> list[str]:
        """Return which groups cannot approve, for auditors alone: it says who is in which group."""
        if not self.parts.reviews.is_auditor(self.caller):
            return []
        report = self.parts.approver_groups.report
        return [visible(one) for one in (report.why_unknown, *report.problems, *report.of_own_calls) if one]

    def _listed(self, reviewed: ReviewRequest) -> dict[str, Any]:
        (arguments, is_whole), odd = listed_arguments(reviewed.request), warnings_of(reviewed.request)
        return {
            **row_of(reviewed, self.parts.reviews.now),
            "digest": reviewed.request.call.digest,
            "arguments": arguments,
            "is_selectable": is_whole and not odd,
        }


class DecisionsPageHandler(PageHandler):
    """Decides several requests with one button."""

    async def post(self) -> None:
        """Apply one decision to all selected requests, and show the result of each."""
        answer = ANSWERS.get(self.get_body_argument("answer", ""))
        reason = self.get_body_argument("reason", "")
        selected = [text.partition(":") for text in self.get_body_arguments("request")]
        if answer is None or len(reason) > MAX_REASON or len(selected) > MAX_DECISIONS:
            raise web.HTTPError(
                422,
                f"an answer is `allow` or `reject`, for up to {MAX_DECISIONS} requests,"
                f" and a reason has up to {MAX_REASON} characters",
            )
        verdicts = [(id, Verdict(answer=answer, digest=digest, reason=reason)) for id, _, digest in selected]
        decided = await self.parts.reviews.decide_all(verdicts, caller=self.caller)
        rows = [await self._row_after(id, one) for (id, _), one in zip(verdicts, decided, strict=True)]
        self.render("decided.html", prefix=self.parts.prefix, rows=rows, failed=sum(one["failed"] for one in rows))

    async def _row_after(self, id: str, decided: ReviewRequest | AgentBoxError) -> dict[str, Any]:
        if not isinstance(decided, AgentBoxError):
            return {**self._named(decided), "failed": False}
        failure = {"status": visible(f"unchanged: {decided}"), "failed": True}
        try:
            return {**self._named(await self.parts.reviews.get(id, self.caller)), **failure}
        except AgentBoxError:  # the caller may not see it, or there is none
            return {"id": visible(id), "name": visible(id), "arguments": "", **failure}

    def _named(self, reviewed: ReviewRequest) -> dict[str, Any]:
        """Return what tells a request from others of the same tool, and its status."""
        return {**row_of(reviewed, self.parts.reviews.now), "arguments": listed_arguments(reviewed.request)[0]}


def _by_end(reviewed: ReviewRequest) -> tuple[bool, float]:
    """Return a sort key that puts the requests that expire first at the top."""
    end = reviewed.request.expires_at
    return end is None, 0.0 if end is None else end.timestamp()
