"""Approval requests: their statuses and transitions, and the outcomes of their calls.

Two fields, two tables. `Status` is the decision (`TRANSITIONS`), `OutcomeState` the outcome of an approved call
(`OUTCOME_TRANSITIONS`). A pair that is in neither table raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Final

from jupyter_agentbox.exceptions import InvalidDecisionError, InvalidTransitionError, StaleDigestError

from .calls import JsonValue, ToolCall
from .grant_uses import GrantUse
from .hub_reviews import HubReview
from .policy import Effect, Evaluation, Rule
from .questions import QuestionRecord
from .reviewers import Reviewer
from .tools import ToolDescription


class Status(str, Enum):
    """The status of a request. All but `PENDING` are final."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    ORPHANED = "orphaned"

    @property
    def is_final(self) -> bool:
        """Whether the status can no longer change."""
        return self is not Status.PENDING


class Answer(str, Enum):
    """A person's answer: one of the Agent Client Protocol's four permission options."""

    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"

    @property
    def allows(self) -> bool:
        """Whether the call may run."""
        return self in (Answer.ALLOW_ONCE, Answer.ALLOW_ALWAYS)

    @property
    def is_lasting(self) -> bool:
        """Whether the answer also applies to later calls of the same tool."""
        return self in (Answer.ALLOW_ALWAYS, Answer.REJECT_ALWAYS)


class Lapse(str, Enum):
    """How a request ends without an answer."""

    TIMED_OUT = "timed_out"
    WITHDRAWN = "withdrawn"
    KERNEL_LOST = "kernel_lost"


class OutcomeState(str, Enum):
    """The state of an approved call."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


#: The status of a new call that a rule decides.
INITIAL: Final[Mapping[Effect, Status]] = {
    Effect.ALLOW: Status.APPROVED,
    Effect.ASK: Status.PENDING,
    Effect.DENY: Status.REJECTED,
}

#: All transitions of a status.
TRANSITIONS: Final[Mapping[tuple[Status, Answer | Lapse], Status]] = {
    (Status.PENDING, Answer.ALLOW_ONCE): Status.APPROVED,
    (Status.PENDING, Answer.ALLOW_ALWAYS): Status.APPROVED,
    (Status.PENDING, Answer.REJECT_ONCE): Status.REJECTED,
    (Status.PENDING, Answer.REJECT_ALWAYS): Status.REJECTED,
    (Status.PENDING, Lapse.TIMED_OUT): Status.EXPIRED,
    (Status.PENDING, Lapse.WITHDRAWN): Status.CANCELLED,
    (Status.PENDING, Lapse.KERNEL_LOST): Status.ORPHANED,
}

#: All transitions of an outcome; ``None`` is an approved call that has not started.
OUTCOME_TRANSITIONS: Final[frozenset[tuple[OutcomeState | None, OutcomeState]]] = frozenset(
    {
        (None, OutcomeState.RUNNING),
        (None, OutcomeState.FAILED),
        (None, OutcomeState.CANCELLED),
        (OutcomeState.RUNNING, OutcomeState.SUCCEEDED),
        (OutcomeState.RUNNING, OutcomeState.FAILED),
        (OutcomeState.RUNNING, OutcomeState.CANCELLED),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision.

    Parameters
    ----------
    answer : Answer
        One of the four.
    digest : str
        The digest of the call that the person was shown.
    reviewer : Reviewer
        Who decided, and how they were identified.
    decided_at : datetime
        Time of the decision, with time zone.
    reason : str
        Why. On a rejection, the calling code is told.
    tell : bool
        Whether the calling code is also told the reason of an approval.
    arguments : dict or None
        Edited arguments; ``None`` if the call runs unchanged.
    edited_digest : str
        The digest of the edited call, if its recorded arguments are redacted.
    grant : GrantUse or None
        The grant that this answer created, or that gave this answer.
    rule : Rule or None
        The rule that gave the answer: one that the reviewer wrote while the request was pending.
    """

    answer: Answer
    digest: str
    reviewer: Reviewer
    decided_at: datetime
    reason: str = ""
    tell: bool = False
    arguments: Mapping[str, JsonValue] | None = None
    edited_digest: str = field(default="", compare=False, repr=False)
    grant: GrantUse | None = None
    rule: Rule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an approved call.

    Parameters
    ----------
    state : OutcomeState
        Running, or how it ended.
    started_at : datetime or None
        When the call was sent to the MCP session; ``None`` if it never was.
    finished_at : datetime or None
        When it ended.
    error : str
        Error message for people; empty on success. A tool's own error text is untrusted.
    questions : tuple of QuestionRecord
        What the server asked a person meanwhile, and was answered.
    review : HubReview or None
        Whom the Hub service asked before it ran the tool, and what they answered, as it says.
    """

    state: OutcomeState
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str = ""
    questions: tuple[QuestionRecord, ...] = ()
    review: HubReview | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A tool call with its evaluation, decision and outcome.

    Parameters
    ----------
    id : str
        A unique, unguessable id.
    call : ToolCall
        The call as requested; edited arguments are in `decision`.
    tool : ToolDescription
        The tool as its server described it at the time of the call.
    evaluation : Evaluation
        The policy's effect, with the rule that gave it.
    created_at : datetime
        Creation time, with time zone.
    expires_at : datetime or None
        When a pending request expires; ``None`` for never.
    status : Status
        The request's status.
    votes : tuple of Decision
        Approvals that did not suffice, because the rule requires more reviewers.
    decision : Decision or None
        The answer that decided the request.
    outcome : Outcome or None
        The outcome of the call, once approved.
    extended_by : str
        Name of whoever last extended the waiting time; empty if nobody did.
    lapsed_at : datetime or None
        When it ended without an answer; ``None`` if it did not, or if the time is unknown.
    """

    id: str
    call: ToolCall
    tool: ToolDescription
    evaluation: Evaluation
    created_at: datetime
    expires_at: datetime | None = None
    status: Status = Status.PENDING
    votes: tuple[Decision, ...] = ()
    decision: Decision | None = None
    outcome: Outcome | None = None
    extended_by: str = ""
    lapsed_at: datetime | None = None

    @classmethod
    def open(
        cls,
        *,
        id: str,
        call: ToolCall,
        tool: ToolDescription,
        evaluation: Evaluation,
        created_at: datetime,
        expires_at: datetime | None,
    ) -> ApprovalRequest:
        """Create a request; a rule that allows or denies makes it final at once."""
        status = INITIAL[evaluation.effect]
        return cls(
            id=id,
            call=call,
            tool=tool,
            evaluation=evaluation,
            created_at=created_at,
            expires_at=expires_at if status is Status.PENDING else None,
            status=status,
        )

    @property
    def outcome_state(self) -> OutcomeState | None:
        """The state of the call; ``None`` if it has not started."""
        return self.outcome.state if self.outcome else None

    @property
    def is_open(self) -> bool:
        """Whether the request is pending, or its approved call has not ended."""
        return self.status is Status.PENDING or (
            self.status is Status.APPROVED and self.outcome_state in (None, OutcomeState.RUNNING)
        )

    @property
    def has_not_run(self) -> bool:
        """Whether the approved call did not run: its caller was gone, the rules changed, or the Hub service refused."""
        outcome = self.outcome
        if outcome is None:
            return False
        if outcome.state is OutcomeState.FAILED:
            return outcome.review is not None and outcome.review.is_refusal
        return outcome.state is OutcomeState.CANCELLED and outcome.started_at is None

    def is_over(self, now: datetime) -> bool:
        """Whether the request is pending and past its expiry time."""
        return self.status is Status.PENDING and self.expires_at is not None and now >= self.expires_at

    def seconds_left(self, now: datetime) -> float | None:
        """Return the remaining waiting time in seconds; ``None`` if unlimited."""
        return None if self.expires_at is None else max(0.0, (self.expires_at - now).total_seconds())

    @property
    def ended_at(self) -> datetime | None:
        """The time at which the request ended; ``None`` if it has not, or if the time is unknown."""
        if self.is_open:
            return None
        if self.status is Status.APPROVED:
            return self.outcome.finished_at if self.outcome else None
        if self.status is Status.REJECTED:
            return self.decision.decided_at if self.decision else self.created_at
        return self.lapsed_at or (self.expires_at if self.status is Status.EXPIRED else None)

    @property
    def answers(self) -> tuple[Decision, ...]:
        """Whatever people or rules answered: the approvals of several, and the decision."""
        return self.votes if self.decision is None else (*self.votes, self.decision)

    @property
    def effective_call(self) -> ToolCall:
        """The call that runs: with the edited arguments, if there are any."""
        if self.decision is None or self.decision.arguments is None:
            return self.call
        edited = self.call.with_arguments(self.decision.arguments)
        return replace(edited, known_digest=self.decision.edited_digest)

    def decide(self, decision: Decision) -> ApprovalRequest:
        """Return the request with a person's decision.

        Raises
        ------
        InvalidTransitionError
            If the request is final.
        StaleDigestError
            If the decision's digest is not that of the stored call.
        InvalidDecisionError
            If a rejection has arguments.
        """
        status = self._next(decision.answer)
        self._check_digest(decision)
        if decision.arguments is not None and not decision.answer.allows:
            raise InvalidDecisionError(
                f"a rejection of request `{self.id}` cannot edit the arguments", request_id=self.id
            )
        if decision.arguments is not None and self.call.with_arguments(decision.arguments).digest == self.call.digest:
            decision = replace(decision, arguments=None)  # nothing was edited
        return replace(self, status=status, decision=decision)

    def endorse(self, vote: Decision) -> ApprovalRequest:
        """Return the request, still pending, with one more approval.

        Raises
        ------
        InvalidTransitionError
            If the request is final.
        StaleDigestError
            If the vote's digest is not that of the stored call.
        InvalidDecisionError
            If the vote does not approve the unchanged call once, or is the person's second one.
        """
        self._next(vote.answer)
        self._check_digest(vote)
        if vote.answer is not Answer.ALLOW_ONCE or vote.arguments is not None:
            raise InvalidDecisionError(
                f"request `{self.id}` needs several persons: each can allow it as it is, once, or reject it",
                request_id=self.id,
            )
        if any(vote.reviewer.name == earlier.reviewer.name for earlier in self.votes):
            raise InvalidDecisionError(
                f"`{vote.reviewer.name}` has already approved request `{self.id}`: another person has to",
                request_id=self.id,
            )
        return replace(self, votes=(*self.votes, vote))

    def extend(self, until: datetime, *, by: str) -> ApprovalRequest:
        """Return the request with a later expiry time.

        Raises
        ------
        InvalidTransitionError
            If the request is final.
        """
        if self.status is not Status.PENDING:
            raise self._not_pending()
        return replace(self, expires_at=until, extended_by=by)

    def lapse(self, lapse: Lapse, *, at: datetime | None = None) -> ApprovalRequest:
        """Return the request as ended without an answer at this time.

        Raises
        ------
        InvalidTransitionError
            If the request is final.
        """
        return replace(self, status=self._next(lapse), lapsed_at=at)

    def with_outcome(self, outcome: Outcome) -> ApprovalRequest:
        """Return the request with its call's outcome.

        Raises
        ------
        InvalidTransitionError
            If the call is not approved, or there is no such transition.
        """
        before = self.outcome.state if self.outcome else None
        if self.status is not Status.APPROVED or (before, outcome.state) not in OUTCOME_TRANSITIONS:
            raise InvalidTransitionError(
                f"request `{self.id}` is `{self.status.value}`"
                f" with outcome `{before.value if before else None}`: `{outcome.state.value}` cannot follow",
                request_id=self.id,
            )
        return replace(self, outcome=outcome)

    def record(
        self, state: OutcomeState, *, at: datetime, error: str = "", review: HubReview | None = None
    ) -> ApprovalRequest:
        """Return the request as its call begins to run at this time, or has ended.

        Parameters
        ----------
        state : OutcomeState
            Running, or how it ended.
        at : datetime
            When.
        error : str
            Why it failed.
        review : HubReview, optional
            Whom the Hub service asked meanwhile.

        Raises
        ------
        InvalidTransitionError
            If the call is not approved, or has ended.
        """
        if state is OutcomeState.RUNNING:
            return self.with_outcome(Outcome(state=state, started_at=at))
        before = self.outcome
        ended = Outcome(
            state=state,
            started_at=before.started_at if before else None,
            finished_at=at,
            error=error,
            questions=before.questions if before else (),
            review=review,
        )
        return self.with_outcome(ended)

    def record_not_run(self, *, at: datetime) -> ApprovalRequest:
        """Return the approved request as ended at this time without having run.

        Raises
        ------
        InvalidTransitionError
            If the call is not approved, or has ended.
        """
        return self.with_outcome(Outcome(state=OutcomeState.CANCELLED, finished_at=at))

    def running_if_approved(self, *, at: datetime) -> ApprovalRequest:
        """Return the request as running if it is approved, because its call starts at once."""
        return self.record(OutcomeState.RUNNING, at=at) if self.status is Status.APPROVED else self

    def with_question(self, record: QuestionRecord) -> ApprovalRequest:
        """Return the running request with one more question."""
        if self.outcome is None:
            return self
        return replace(self, outcome=replace(self.outcome, questions=(*self.outcome.questions, record)))

    def without_question(self, record: QuestionRecord) -> ApprovalRequest:
        """Return the request without a question that could not be stored."""
        if self.outcome is None:
            return self
        kept = tuple(each for each in self.outcome.questions if each is not record)
        return replace(self, outcome=replace(self.outcome, questions=kept))

    def _check_digest(self, decision: Decision) -> None:
        if decision.digest != self.call.digest:
            raise StaleDigestError(
                f"the decision on request `{self.id}` is about other arguments than the stored ones:"
                " reload and look again",
                request_id=self.id,
            )

    def _next(self, cause: Answer | Lapse) -> Status:
        try:
            return TRANSITIONS[self.status, cause]
        except KeyError:
            raise self._not_pending() from None

    def _not_pending(self) -> InvalidTransitionError:
        return InvalidTransitionError(
            f"request `{self.id}` is no longer pending: it is `{self.status.value}`", request_id=self.id
        )


def reason_for(request: ApprovalRequest) -> str:
    """Return the reason of a rejection: that of the person, of their grant, or of the rule."""
    rule = request.evaluation.rule
    if request.decision is not None:
        rule = request.decision.rule
        if rule is None:
            return request.decision.reason
    elif request.evaluation.grant is not None:
        return request.evaluation.grant.reason
    return (rule.reason or str(rule)) if rule is not None else ""


def comment_for(request: ApprovalRequest) -> str:
    """Return an approval's comment for the calling code, if any; else an empty string."""
    decision = request.decision
    return decision.reason if decision is not None and decision.answer.allows and decision.tell else ""
