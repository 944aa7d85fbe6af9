from __future__ import annotations

import pytest

from jupyter_agentbox.exceptions import ERRORS_BY_CODE, AgentBoxError, ToolCallRejectedError
from jupyter_agentbox.kernel.failures import error_of, explain_interrupt
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


def test_an_error_has_only_text_that_can_be_sent() -> None:
    failure = Failure(id="1", code="rejected", message="half \ud83d", details={"reason": "\ude00, \ud83d\ude00"})
    error = error_of(failure)
    assert isinstance(error, ToolCallRejectedError)
    assert (str(error), error.reason) == ("half \ufffd", "\ufffd, \U0001f600")


@pytest.mark.parametrize(
    ("has_begun", "said"),
    [
        (False, "the request for `shop.forecast` was withdrawn"),
        (
            True,
            "`shop.forecast` was running and was told to stop. It may have had an effect: check",
        ),
    ],
)
def test_an_interrupt_says_what_it_ended(said: str, *, has_begun: bool) -> None:
    interrupt = KeyboardInterrupt()
    explain_interrupt(interrupt, "shop.forecast", has_begun=has_begun)
    assert str(interrupt).startswith(said)


def test_an_interrupt_that_says_something_already_keeps_its_words() -> None:
    interrupt = KeyboardInterrupt("the machine is shut down")
    explain_interrupt(interrupt, "shop.forecast", has_begun=False)
    assert str(interrupt) == "the machine is shut down"
