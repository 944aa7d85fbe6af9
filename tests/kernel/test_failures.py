from __future__ import annotations

import pytest

from jupyter_agentbox.exceptions import ERRORS_BY_CODE, AgentBoxError
from jupyter_agentbox.kernel.failures import error_of
from jupyter_agentbox.protocol.messages import Failure


@pytest.mark.parametrize(("code", "cls"), ERRORS_BY_CODE.items())
def test_every_error_of_the_server_is_rebuilt(code: str, cls: type[AgentBoxError]) -> None:
    error = error_of(Failure(id="1", code=code, message="why", request_id="r1"))

    assert type(error) is cls
    assert (str(error), error.request_id) == ("why", "r1")


def test_code_of_a_newer_server_is_an_error_of_this_package() -> None:
    assert type(error_of(Failure(id="1", code="from_the_future", message="why"))) is AgentBoxError


def test_details_that_are_no_text_are_dropped() -> None:
    error = error_of(Failure(id="1", code="invalid_arguments", message="", details={"parameter": 3}))

    assert error.parameter is None  # type: ignore[attr-defined]
