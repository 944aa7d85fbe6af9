from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from ipywidgets.widgets.widget import _instances

from jupyter_agentbox.kernel.call_outputs import FEW_CALLS, CallOutput
from jupyter_agentbox.kernel.card import ApprovalCard
from jupyter_agentbox.kernel.cells import Cell
from jupyter_agentbox.kernel.display import Card, attempt
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE

from .fakes import FakeTransport

WIDGET = "application/vnd.jupyter.widget-view+json"
PAGE = Cell({"metadata": {"cellId": "cell-1"}})


def shown(transport: FakeTransport, cell: Cell, what: str = "shop.add", url: str = "http://x/lab") -> dict[str, Any]:
    Card(CallOutput(transport, cell), what=what, request_id="r1", cell=cell).show(url)
    return transport.published[-1][1]


def test_page_gets_the_request_id_and_a_text_that_no_widget_hides(transport: FakeTransport) -> None:
    content = shown(transport, PAGE)

    assert list(content["data"]) == [CARD_MIME_TYPE, "text/html", "text/plain"]
    assert content["data"][CARD_MIME_TYPE] == {"request_id": "r1"}
    assert content["transient"] == {"display_id": "agentbox-r1"}
    assert transport.published[-1][2] is PAGE


def test_page_gets_a_widget_until_the_call_ends(transport: FakeTransport) -> None:
    before = set(_instances)
    card = Card(CallOutput(transport, PAGE), what="shop.add", request_id="r1", cell=PAGE)
    card.show("")
    new = [widget for id, widget in _instances.items() if id not in before]
    (widget,) = [widget for widget in new if isinstance(widget, ApprovalCard)]
    card.finish("allowed")

    assert widget.request_id == "r1"
    assert widget.comm is None


def test_nothing_of_a_widget_is_left_when_the_call_ended(transport: FakeTransport) -> None:
    before = set(_instances)
    card = Card(CallOutput(transport, PAGE), what="shop.add", request_id="r1", cell=PAGE)
    card.show("")
    shown = set(_instances) - before
    card.finish("allowed")

    assert shown
    assert set(_instances) == before


def test_only_of_few_calls_of_a_cell_has_each_a_widget(transport: FakeTransport) -> None:
    before = set(_instances)
    output = CallOutput(transport, PAGE)
    for number in range(FEW_CALLS + 5):
        Card(output, what="shop.add", request_id=f"r{number}", cell=PAGE).show("")

    new = [widget for id, widget in _instances.items() if id not in before]
    assert len([widget for widget in new if isinstance(widget, ApprovalCard)]) == FEW_CALLS


def test_widgets_model_holds_the_request_id_and_nothing_else() -> None:
    card = ApprovalCard(request_id="r1")
    own = {name: value for name, value in card.get_state().items() if name not in ("layout", "tabbable", "tooltip")}

    assert own == {
        "_dom_classes": (),
        "_model_module": "jupyter-agentbox",
        "_model_module_version": "^0.1.0",
        "_model_name": "ApprovalCardModel",
        "_view_count": None,
        "_view_module": "jupyter-agentbox",
        "_view_module_version": "^0.1.0",
        "_view_name": "ApprovalCardView",
        "request_id": "r1",
    }


def test_other_front_ends_are_told_what_waits_and_where_to_decide(transport: FakeTransport) -> None:
    content = shown(transport, Cell(), what="shop.<b>\u202e")

    assert WIDGET not in content["data"]
    assert content["data"]["text/plain"] == (
        "shop.<b><U+202E> is waiting for approval. Allow, edit or reject it at http://x/lab."
    )
    assert content["data"]["text/html"] == (
        "<div><b>shop.&lt;b&gt;&lt;U+202E&gt;</b> is waiting for approval. Allow, edit or reject it at"
        ' <a href="http://x/lab" target="_blank" rel="noopener">http://x/lab</a>.</div>'
    )


def test_on_a_hub_whose_address_is_not_known_they_are_told_the_path(transport: FakeTransport) -> None:
    data = shown(transport, Cell(), what="shop.buy", url="/hub/user/ada/")["data"]

    assert data["text/plain"] == (
        "shop.buy is waiting for approval. Allow, edit or reject it at /hub/user/ada/ on your JupyterHub."
    )
    assert '<a href="/hub/user/ada/"' in data["text/html"]


@pytest.mark.parametrize("url", ["", "javascript:alert(1)", "//elsewhere.example/"])
def test_address_that_is_no_page_is_not_shown(transport: FakeTransport, url: str) -> None:
    data = shown(transport, Cell(), url=url)["data"]

    assert "panel of approval requests" in data["text/plain"]
    assert "<a" not in data["text/html"]


def test_page_without_ipywidgets_gets_the_rest(transport: FakeTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jupyter_agentbox.kernel.card", raising=False)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)

    assert WIDGET not in shown(transport, PAGE)["data"]


def test_finished_card_is_one_line_without_a_widget(transport: FakeTransport) -> None:
    card = Card(CallOutput(transport, PAGE), what="shop.add", request_id="r1", cell=PAGE)
    card.show("")

    card.finish("rejected (<i>no</i>)")

    kind, content, _ = transport.published[-1]
    assert kind == "update_display_data"
    assert content["transient"] == {"display_id": "agentbox-r1"}
    assert content["data"] == {
        CARD_MIME_TYPE: {"request_id": "r1"},
        "text/html": "<div>shop.add: rejected (&lt;i&gt;no&lt;/i&gt;)</div>",
        "text/plain": "shop.add: rejected (<i>no</i>)",
    }


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT as a kernel has it, also where the tests were started in the background and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_end_of_what_is_shown() -> None:
    done = []

    def step() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append(True)

    with pytest.raises(KeyboardInterrupt):
        attempt(step)
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_what_is_shown_by_a_thread_leaves_the_interrupt_alone() -> None:
    seen = []
    thread = threading.Thread(target=attempt, args=(lambda: seen.append(signal.getsignal(signal.SIGINT)),))
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
