from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.kernel import runtime
from jupyter_agentbox.kernel.cells import Cells
from jupyter_agentbox.kernel.link import Link
from jupyter_agentbox.kernel.pending_requests import Patience

from .fakes import FakeTransport, ServerEnd

SHOP = [
    ToolDescription(
        name="list-orders",
        title="List orders",
        description="Lists the orders of the shop.",
        input_schema={
            "type": "object",
            "properties": {
                "status": {"enum": ["open", "closed"], "description": "Which orders."},
                "from": {"type": ["string", "null"]},
                "limit": {"type": "integer", "default": 20},
            },
            "required": ["status"],
        },
    ),
    ToolDescription(name="wait", description="Waits."),
]

#: Asks often, and gives up when the test has long failed.
PATIENT = Patience(attach=60, repeat=0.01, ping=0.02, lost=60)
#: Gives up soon, so that a test of silence takes little time, but not while a busy machine does something else.
HASTY = Patience(attach=0.2, repeat=0.01, ping=0.02, lost=0.2)


@pytest.fixture
def parent() -> dict[str, Any]:
    """The shell's parent message; change it to change the cell."""
    return {
        "header": {"msg_id": "m1", "msg_type": "execute_request"},
        "metadata": {"cellId": "cell-1"},
        "content": {"silent": False},
    }


@pytest.fixture
def cells(parent: dict[str, Any]) -> Cells:
    return Cells(lambda: parent)


@pytest.fixture
def server() -> ServerEnd:
    return ServerEnd({"my-shop": SHOP})


@pytest.fixture
def transport(server: ServerEnd) -> FakeTransport:
    return FakeTransport(server)


@pytest.fixture
def link(transport: FakeTransport, cells: Cells) -> Iterator[Link]:
    """The process's link, to a server end that answers at once."""
    made = Link(transport, cells, patience=PATIENT)
    runtime.use(made)
    yield made
    runtime.use(None)


@pytest.fixture
def tools(link: Link) -> Iterator[Any]:
    """The package of the servers' modules, as new."""
    forget_modules()
    from jupyter_agentbox import tools

    yield tools
    forget_modules()


def forget_modules() -> None:
    """Make the next import of the package a first one."""
    from jupyter_agentbox.kernel.modules import PACKAGE, ToolsFinder

    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, ToolsFinder)]
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    vars(sys.modules["jupyter_agentbox"]).pop("tools", None)
