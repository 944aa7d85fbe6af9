from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import NoServerError
from jupyter_agentbox.kernel import runtime

from .fakes import ServerEnd


def test_tool_is_called_as_a_function_of_its_servers_module(tools: Any, server: ServerEnd) -> None:
    from jupyter_agentbox.tools import my_shop
    from jupyter_agentbox.tools.my_shop import list_orders

    found = tools.my_shop.list_orders(status="open", from_=None)

    assert found.echo == {"status": "open", "from": None}
    assert my_shop.list_orders is list_orders is tools.my_shop.list_orders
    assert (server.calls[0].server, server.calls[0].tool) == ("my-shop", "list-orders")


def test_servers_are_listed_and_found_by_their_own_names(tools: Any) -> None:
    assert dir(tools) == ["my_shop", "reload"]
    assert tools["my-shop"] is tools.my_shop
    assert list(tools) == ["my-shop"]
    assert tools._ipython_key_completions_() == ["my-shop"]


def test_missing_server_names_those_that_exist(tools: Any) -> None:
    with pytest.raises(AttributeError, match="`my_shop`"):
        _ = tools.nowhere
    with pytest.raises(KeyError, match="my_shop"):
        _ = tools["nowhere"]
    assert not hasattr(tools, "_ipython_display_")


def test_servers_are_shown_with_their_state(tools: Any, server: ServerEnd) -> None:
    assert repr(tools) == "The MCP servers of this Jupyter server: tools.my_shop"
    assert '<td style="text-align: left">tools.my_shop</td>' in tools._repr_html_()
    with pytest.raises(AttributeError, match="Did you mean `my_shop`"):
        _ = tools.my_shp
    server.servers.clear()
    tools.reload()
    assert repr(tools) == "The MCP servers of this Jupyter server: none is configured"


def test_server_whose_name_is_taken_gets_another(tools: Any, server: ServerEnd) -> None:
    server.servers["reload"] = [ToolDescription(name="a")]
    server.servers["class"] = [ToolDescription(name="a")]

    assert dir(tools) == ["class_", "my_shop", "reload", "reload_"]
    assert dir(tools.reload_) == ["a"]
    assert tools["reload"] is tools.reload_


def test_wire_name_as_attribute_says_the_python_name(tools: Any, server: ServerEnd) -> None:
    server.servers["class"] = []

    with pytest.raises(AttributeError, match="class_"):
        getattr(tools, "class")


def test_reload_reads_servers_and_tools_again(tools: Any, server: ServerEnd) -> None:
    shop = tools.my_shop
    server.servers["my-shop"] = [ToolDescription(name="refund")]
    server.servers["new"] = []

    tools.reload()

    assert dir(shop) == ["refund"]
    assert tools.new.__name__ == "jupyter_agentbox.tools.new"


def test_outside_a_kernel_there_is_no_server(tools: Any) -> None:
    runtime.use(None)

    with pytest.raises(NoServerError, match="kernel"):
        _ = tools.shop
    assert dir(tools) == ["reload"]


def test_importing_the_tools_imports_neither_the_server_nor_widgets() -> None:
    heavy = (
        "{'mcp', 'jupyter_server', 'ipywidgets', 'sqlalchemy', 'jsonschema', 'tornado', 'IPython', 'asyncio', 'comm'}"
    )
    code = f"import sys, jupyter_agentbox.tools; print(sorted({heavy} & set(sys.modules)))"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"
