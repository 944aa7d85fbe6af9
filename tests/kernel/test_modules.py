from __future__ import annotations

import importlib
import inspect
import linecache
import re
import sys
import time
from types import ModuleType
from typing import Any

import pytest

from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import NoServerError, UnknownServerError
from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.kernel.link import Link
from jupyter_agentbox.kernel.modules import Servers, ToolsFinder, describe
from jupyter_agentbox.protocol.messages import GetModule, ListServers, Reply, ToolsChanged, to_json

from .conftest import HASTY
from .fakes import ServerEnd


def test_server_is_a_real_module(tools: Any) -> None:
    shop = importlib.import_module("jupyter_agentbox.tools.my_shop")

    assert isinstance(shop, ModuleType)
    assert sys.modules["jupyter_agentbox.tools.my_shop"] is shop
    assert shop.__name__ == "jupyter_agentbox.tools.my_shop"
    assert dir(shop) == ["list_orders", "wait"]
    assert inspect.getmodule(shop.list_orders) is shop


def test_source_of_a_tool_can_be_read(tools: Any) -> None:
    source = inspect.getsource(tools.my_shop.list_orders)
    linecache.checkcache()

    assert source.startswith("@_call.tool\ndef list_orders(\n")
    assert inspect.getsource(tools.my_shop.list_orders) == source
    assert source in inspect.getsource(tools.my_shop)


def test_reload_brings_new_tools_and_drops_old_ones(tools: Any, server: ServerEnd) -> None:
    shop = tools.my_shop
    server.servers["my-shop"] = [ToolDescription(name="refund")]

    importlib.reload(shop)

    assert dir(shop) == ["refund"]
    with pytest.raises(AttributeError):
        _ = shop.wait


def test_a_tool_that_its_server_lists_since_is_found_without_a_reload(
    tools: Any, server: ServerEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = tools.my_shop
    server.servers["my-shop"] = [ToolDescription(name="refund")]
    with pytest.raises(AttributeError):
        _ = shop.refund  # the list is asked for once in a few seconds
    later = time.monotonic() + 60
    monkeypatch.setattr("jupyter_agentbox.kernel.modules.time.monotonic", lambda: later)

    assert shop.refund.__name__ == "refund"
    assert dir(shop) == ["refund"]


def test_a_list_that_cannot_be_asked_for_leaves_the_tools_as_they_were(
    tools: Any, server: ServerEnd, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = tools.my_shop
    link.patience = HASTY
    server.here = False
    later = time.monotonic() + 60
    monkeypatch.setattr("jupyter_agentbox.kernel.modules.time.monotonic", lambda: later)

    with pytest.raises(AttributeError, match="`list_orders`, `wait`"):
        _ = shop.refund
    assert dir(shop) == ["list_orders", "wait"]


def test_what_the_server_says_has_changed_is_there_at_once_whatever_is_looked_at(
    tools: Any, server: ServerEnd, link: Link
) -> None:
    shop, changed = tools.my_shop, to_json(ToolsChanged(server="my-shop"))
    same, server.servers["my-shop"] = shop.wait, [ToolDescription(name="refund"), ToolDescription(name="wait")]

    link.receive(changed)
    assert shop.wait is not same, "it may take other arguments"
    server.servers["my-shop"] = [ToolDescription(name="refund")]
    link.receive(changed)
    assert dir(shop) == ["refund"]
    server.servers["my-shop"] = [ToolDescription(name="returns")]
    link.receive(changed)
    assert "returns(...)" in repr(shop)
    asked = len(server.received)
    assert shop.returns.__name__ == "returns"
    assert len(server.received) == asked, "nothing has changed since"


def test_a_server_whose_tools_change_all_the_time_is_not_asked_at_every_look(
    tools: Any, server: ServerEnd, link: Link
) -> None:
    shop, asked = tools.my_shop, len(server.received)
    for _ in range(100):
        link.receive(to_json(ToolsChanged(server="my-shop")))
        assert shop.wait.__name__ == "wait"
    assert len(server.received) - asked <= 20


def test_all_tools_that_there_are_now_are_imported_after_a_change(tools: Any, server: ServerEnd, link: Link) -> None:
    assert tools.my_shop.wait
    server.servers["my-shop"] = [ToolDescription(name="refund")]
    link.receive(to_json(ToolsChanged(server="my-shop")))
    names: dict[str, Any] = {}
    exec("from jupyter_agentbox.tools.my_shop import *", names)
    assert "refund" in names
    assert "wait" not in names


def test_a_changed_list_that_cannot_be_had_leaves_the_tools_for_some_seconds(
    tools: Any, server: ServerEnd, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = tools.my_shop
    link.receive(to_json(ToolsChanged(server="my-shop")))
    server.servers["my-shop"] = [ToolDescription(name="refund")]
    link.patience, server.here = HASTY, False
    assert dir(shop) == ["list_orders", "wait"]
    asked = len(server.received)
    assert shop.wait.__name__ == "wait"
    assert len(server.received) == asked, "not at every look"

    server.here = True
    later = time.monotonic() + 60
    monkeypatch.setattr("jupyter_agentbox.kernel.modules.time.monotonic", lambda: later)
    assert dir(shop) == ["refund"]


def test_missing_tool_names_those_that_exist(tools: Any) -> None:
    with pytest.raises(AttributeError, match="`list_orders`, `wait`"):
        _ = tools.my_shop.delete_everything
    with pytest.raises(AttributeError, match="Did you mean `list_orders`"):
        _ = tools.my_shop.list_order
    assert not hasattr(tools.my_shop, "_repr_png_")


def test_module_shows_its_tools_with_nothing_that_a_server_could_turn_into_markup(
    tools: Any, server: ServerEnd
) -> None:
    server.servers["my-shop"] = [
        ToolDescription(name="look", title="Look <img src=x>", annotations={"readOnlyHint": True}),
        ToolDescription(name="drop", description="Drop\u202e it\nall", annotations={"destructiveHint": True}),
        ToolDescription(name="add", annotations={"destructiveHint": False}),
        ToolDescription(name="both", annotations={"readOnlyHint": True, "destructiveHint": True}),
        ToolDescription(name="quiet"),
    ]
    assert repr(tools.my_shop).splitlines() == [
        "Tools of the MCP server `my-shop`:",
        "  look(...)   Look <img src=x>",
        "  drop(...)   Drop<U+202E> it",
        "  add(...)",
        "  both(...)",
        "  quiet(...)",
    ]
    html = tools.my_shop._repr_html_()
    assert "Look &lt;img src=x&gt;" in html
    assert "<img" not in html
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", html)
    assert cells[2::3] == ["read-only", "destructive", "adds or changes data", "destructive", "does not say"]


def test_module_without_tools_says_so(tools: Any, server: ServerEnd) -> None:
    server.servers["my-shop"] = []
    assert repr(tools.my_shop) == "Tools of the MCP server `my-shop`: none"


def test_unknown_server_is_a_missing_module(tools: Any) -> None:
    with pytest.raises(ModuleNotFoundError, match="my_shop"):
        importlib.import_module("jupyter_agentbox.tools.nowhere")


def test_finder_leaves_other_modules_alone(tools: Any) -> None:
    finder = ToolsFinder(Servers(()))

    assert finder.find_spec("jupyter_agentbox.core") is None
    assert finder.find_spec("jupyter_agentbox.tools._private") is None


def test_answer_without_a_module_is_an_error_that_says_so(tools: Any, server: ServerEnd) -> None:
    answers = server.answers
    server.answers = lambda message: (  # type: ignore[method-assign]
        [Reply(id=message.id, content={})] if isinstance(message, GetModule) else answers(message)
    )

    with pytest.raises(NoServerError):
        _ = tools.my_shop
    assert "jupyter_agentbox.tools.my_shop" not in sys.modules


def test_list_of_servers_is_asked_for_once_in_a_while(link: Link, server: ServerEnd) -> None:
    now = [0.0]
    servers = Servers(reserved=(), clock=lambda: now[0])

    assert servers.completion_names() == servers.completion_names() == {"my_shop": "my-shop"}
    now[0] = 6.0
    servers.completion_names()

    assert sum(isinstance(message, ListServers) for message in server.received) == 2


def test_glance_at_nobody_is_empty_and_not_repeated_at_once(link: Link, server: ServerEnd) -> None:
    link.patience = HASTY
    server.here = False
    servers = Servers(reserved=())

    assert servers.completion_names() == {}
    asked = len(server.received)
    assert servers.completion_names() == {}
    assert len(server.received) == asked


def test_server_is_found_by_either_name(link: Link) -> None:
    servers = Servers(reserved=())

    assert servers.identifier("my-shop") == servers.identifier("my_shop") == "my_shop"
    assert servers.name("my_shop") == "my-shop"
    with pytest.raises(UnknownServerError):
        servers.name("else")


def test_unknown_server_where_none_is_configured_says_so(link: Link, server: ServerEnd) -> None:
    server.servers.clear()

    with pytest.raises(UnknownServerError, match="none is configured"):
        Servers(reserved=()).identifier("shop")


def test_editor_that_asks_is_not_kept_waiting(tools: Any, server: ServerEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "is_asked_by_editor", lambda: True)
    monkeypatch.setattr("jupyter_agentbox.kernel.modules.COMPLETION_WAIT", 0.02)
    answers = server.answers
    server.answers = lambda message: [] if isinstance(message, GetModule) else answers(message)  # type: ignore[method-assign]

    with pytest.raises(NoServerError):
        _ = tools.my_shop


def test_description_is_one_line_of_the_tools_own_words() -> None:
    tools = [
        {"function": "a", "name": "A", "title": "", "description": "\nFirst.\nSecond."},
        {"function": "b", "name": "B", "title": "Title\u202e", "description": "Words."},
        "no tool",
    ]

    assert describe(tools) == [("a", "A", "First."), ("b", "B", "Title<U+202E>")]
