from __future__ import annotations

from jupyter_agentbox.exceptions import TooManyRequestsError
from jupyter_agentbox.services.handlers import STATUS_CODES


def test_too_many_requests_have_the_status_of_http() -> None:
    assert next(code for kind, code in STATUS_CODES if issubclass(TooManyRequestsError, kind)) == 429
