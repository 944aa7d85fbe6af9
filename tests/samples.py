"""Approval requests for tests: one by hand, and Hypothesis strategies of all that there can be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Decision, Outcome, OutcomeState, Status
from jupyter_agentbox.core.approvers import Approvers, Escalation
from jupyter_agentbox.core.askers import Asker
from jupyter_agentbox.core.calls import JsonValue, Origin, ToolCall
from jupyter_agentbox.core.grant_uses import GrantUse, Scope, Void, VoidGrant
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Rule
from jupyter_agentbox.core.questions import QuestionAction, QuestionMode, QuestionRecord
from jupyter_agentbox.core.reviewers import Reviewer, ReviewerKind, Via
from jupyter_agentbox.core.tools import ToolDescription

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
#: When the call of `an_ended_request` ended.
LATER = NOON + timedelta(seconds=90)
ADA = Reviewer(name="ada", via=Via.BROWSER)


def a_call(**changes: Any) -> ToolCall:
    values: dict[str, Any] = {
        "server": "shop",
        "tool": "delete_order",
        "arguments": {"order_id": 7},
        "origin": Origin(kernel_id="k1", notebook_path="work/orders.ipynb", cell_id="c1"),
    }
    return ToolCall(**{**values, **changes})


def a_request(id: str = "r1", **changes: Any) -> ApprovalRequest:
    values: dict[str, Any] = {
        "call": a_call(),
        "tool": ToolDescription(name="delete_order", title="Delete an order"),
        "evaluation": Evaluation(effect=Effect.ASK),
        "created_at": NOON,
        "expires_at": NOON + timedelta(minutes=10),
    }
    return ApprovalRequest.open(id=id, **{**values, **changes})


def an_ended_request(**changes: Any) -> ApprovalRequest:
    """Return a request that Ada edited and allowed, and whose call failed after 90 seconds."""
    request = a_request(**changes)
    decided = request.decide(a_decision(request, arguments={"order_id": 8}, reason="fine"))
    running = decided.with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
    return running.with_outcome(
        Outcome(state=OutcomeState.FAILED, started_at=NOON, finished_at=LATER, error="no such order")
    )


def a_decision(request: ApprovalRequest, answer: Answer = Answer.ALLOW_ONCE, **changes: Any) -> Decision:
    values: dict[str, Any] = {"digest": request.call.digest, "reviewer": ADA, "decided_at": NOON}
    return Decision(answer=answer, **{**values, **changes})


#: Text with all that Unicode has, lone surrogates and NUL too.
texts = st.text(st.characters(exclude_categories=()), max_size=20)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**63, max_value=2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
json_objects = st.dictionaries(texts, json_values, max_size=4)
times = st.datetimes(
    min_value=datetime(1990, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-8))]),
)
calls = st.builds(
    ToolCall,
    server=texts,
    tool=texts,
    arguments=json_objects,
    origin=st.builds(
        Origin,
        kernel_id=st.none() | texts,
        notebook_path=st.none() | texts,
        cell_id=st.none() | texts,
        thread_id=st.none() | texts,
        turn_id=st.none() | texts,
        isolation=st.sampled_from(Isolation),
        has_own_settings=st.booleans(),
        person=st.none() | texts,
        askers=st.lists(
            st.builds(
                Asker,
                name=texts,
                via=st.sampled_from(Via),
                kind=st.sampled_from(ReviewerKind),
                display_name=texts,
            ),
            max_size=2,
        ).map(tuple),
    ),
)
tools = st.builds(
    ToolDescription,
    name=texts,
    title=texts,
    description=texts,
    input_schema=json_objects,
    output_schema=st.none() | json_objects,
    annotations=json_objects,
)
rules = st.builds(
    Rule,
    approvers=st.none()
    | st.builds(
        Approvers,
        group=texts,
        count=st.integers(1, 20),
        self_counts=st.booleans(),
        delegates=st.lists(texts, max_size=2).map(tuple),
        escalation=st.none() | st.builds(Escalation, group=texts, after=st.integers(1, 9).map(float)),
        break_glass=texts,
        needs_reason=st.booleans(),
    ),
    server=texts,
    tool=texts,
    effect=st.sampled_from(Effect),
    layer=st.sampled_from(Layer),
    reason=texts,
    kernel_id=st.none() | texts,
    file=texts,
    line=st.integers(0, 9999),
)
reviewers = st.builds(
    Reviewer,
    name=texts,
    via=st.sampled_from(Via),
    kind=st.sampled_from(ReviewerKind),
    display_name=texts,
    credential=texts,
    hub_server=texts,
    token_note=texts,
)
grant_uses = st.builds(
    GrantUse, id=texts, scope=st.sampled_from(Scope), granter=reviewers, granted_at=times, reason=texts
)
void_grants = st.builds(
    VoidGrant,
    grant=grant_uses,
    void=st.sampled_from(Void),
    before=st.none() | tools,
    server_before=texts,
    server_now=texts,
)
decisions = st.builds(
    Decision,
    answer=st.sampled_from(Answer),
    digest=texts,
    reviewer=reviewers,
    decided_at=times,
    reason=texts,
    arguments=st.none() | json_objects,
    grant=st.none() | grant_uses,
    rule=st.none() | rules,
)
question_records = st.builds(
    QuestionRecord,
    mode=st.sampled_from(QuestionMode),
    message=texts,
    url=texts,
    action=st.sampled_from(QuestionAction),
    content=st.lists(st.tuples(texts, json_values), max_size=2).map(tuple),
    reviewer=st.none() | reviewers,
    asked_at=times,
    answered_at=times,
)
outcomes = st.builds(
    Outcome,
    questions=st.lists(question_records, max_size=1).map(tuple),
    state=st.sampled_from(OutcomeState),
    started_at=st.none() | times,
    finished_at=st.none() | times,
    error=texts,
)
requests = st.builds(
    ApprovalRequest,
    id=texts,
    call=calls,
    tool=tools,
    evaluation=st.builds(
        Evaluation,
        effect=st.sampled_from(Effect),
        rule=st.none() | rules,
        grant=st.none() | grant_uses,
        voided=st.none() | void_grants,
    ),
    created_at=times,
    expires_at=st.none() | times,
    status=st.sampled_from(Status),
    votes=st.lists(decisions, max_size=2).map(tuple),
    decision=st.none() | decisions,
    outcome=st.none() | outcomes,
)
