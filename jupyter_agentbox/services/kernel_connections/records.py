"""How a call was decided, as sent to the kernel for the line saved in the notebook."""

from __future__ import annotations

from jupyter_agentbox.core.approvals import ApprovalRequest, comment_for
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.times import json_time


def record_of(request: ApprovalRequest, *, with_arguments: bool, review: HubReview | None = None) -> JsonObject:
    """Return the saved line of a request.

    Parameters
    ----------
    request : ApprovalRequest
        The decided request.
    with_arguments : bool
        Whether the notebook may contain the arguments, as requested and as run.
    review : HubReview, optional
        Whom the Hub service asked as well.

    Returns
    -------
    JsonObject
        ``{"status", "by", "at", "is_edited", "arguments", "with_arguments", "comment", "hub"}``. ``by`` and ``at`` are
        ``None`` where nobody decided, ``arguments`` where nobody edited them, ``comment`` where the code is told none,
        ``hub`` where the Hub service asked nobody; else it is ``{"status", "text"}``.
    """
    decision = request.decision
    edited = decision.arguments if decision is not None and with_arguments else None
    return {
        "status": request.status.value,
        "by": None if decision is None else decision.reviewer.in_words,
        "at": None if decision is None else json_time(decision.decided_at),
        "is_edited": decision is not None and decision.arguments is not None,
        "arguments": None if edited is None else dict(edited),
        "with_arguments": with_arguments,
        "comment": comment_for(request) or None,
        "hub": None if review is None else {"status": review.status, "text": str(review)},
    }
