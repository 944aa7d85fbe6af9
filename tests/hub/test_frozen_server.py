"""A user's server at a real JupyterHub that is frozen while a request waits, as by a suspended machine, and goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from .hub import API, OWNER, TIMEOUT, Hub, Session, frozen_server
from .test_service import result_of, until

#: Seconds that a request waits by the user's rule, in which a server is frozen after it has asked.
SHORT = 4


@pytest.fixture
def rules(hub: Hub) -> Iterator[None]:
    """Let requests of the owner's server wait for a few seconds only."""
    file = hub.root / "homes" / OWNER / ".jupyter" / "agentbox_rules.json"
    file.parent.mkdir(exist_ok=True)
    rule = {"effect": "ask", "server": "shop", "tool": "*", "timeout": SHORT}
    file.write_text(json.dumps({"rules": [rule]}))
    yield
    file.unlink()


def ask(hub: Hub, kernel: BlockingKernelClient, order: int) -> tuple[str, Any]:
    """Call a tool in a kernel; return the message and the request, which waits."""
    running = kernel.execute(f"from jupyter_agentbox import tools\nprint(tools.shop.delete_order(order_id={order}))")
    return running, until(lambda: approvals(hub, "?status=pending"))[0]


def approvals(hub: Hub, query: str = "") -> Any:
    return hub.ask(f"{hub.server()}{API}approvals{query}", token=hub.admin)[1]["approvals"]


@contextmanager
def deciding(hub: Hub, request: Any) -> Iterator[list[tuple[int, Any]]]:
    """Allow a request as its owner does in a browser, and do something before the server answers."""
    browser = Session(hub, OWNER)
    browser.open_lab(hub.server())
    url, body = hub.decision(request)
    answers: list[tuple[int, Any]] = []
    thread = threading.Thread(
        target=lambda: answers.append(browser.ask(url, {**body, "decision": "allow_once"})), daemon=True
    )
    with frozen_server(hub.root / "homes" / OWNER):
        thread.start()
        thread.join(0.5)
        assert not answers
        yield answers
    thread.join(TIMEOUT)


@pytest.mark.usefixtures("shop")
def test_a_decision_while_the_server_is_frozen_counts_once_when_it_goes_on(hub: Hub) -> None:
    with hub.kernel() as kernel:
        running, request = ask(hub, kernel, 1210)
        with deciding(hub, request) as answers:
            pass
        said = result_of(kernel, running)

    assert [code for code, _ in answers] == [200]
    assert "1210" in said
    found = hub.read(request)
    assert (found["status"], found["outcome"]["state"], found["decision"]["via"]) == (
        "approved",
        "succeeded",
        "browser",
    )
    kernel_id = request["call"]["kernel_id"]
    assert [one["id"] for one in approvals(hub) if one["call"]["kernel_id"] == kernel_id] == [request["id"]]


@pytest.mark.usefixtures("shop", "rules")
def test_a_request_that_expires_while_the_server_is_frozen_is_not_allowed_by_a_click_of_that_time(hub: Hub) -> None:
    with hub.kernel() as kernel:
        running, request = ask(hub, kernel, 1211)
        with deciding(hub, request) as answers:
            expires = datetime.fromisoformat(request["expires_at"])
            until(lambda: datetime.now(UTC) > expires)
        said = result_of(kernel, running)

    found = hub.read(request)
    assert (found["status"], found["outcome"]) == ("expired", None)
    assert [code for code, _ in answers] == [409]
    assert "ApprovalExpiredError" in said
