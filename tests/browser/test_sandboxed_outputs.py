"""What outputs of a sandboxed kernel may do in the page, and what those of a plain one do."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .held_requests import HeldRequests
from .lab import Lab
from .outputs import ASK, OUTPUTS, POST_AS_ANYWIDGET, POST_AS_JAVASCRIPT
from .person import Person, press

HACK = "(window.hacked ||= []).push(1)"
HACKED = "[...new Set(window.hacked ?? [])].sort()"
BLOCKED = re.compile("^Blocked output: ")


def blocked(place: Locator) -> Locator:
    """The cards of the outputs that did not run."""
    return place.get_by_role("group", name=BLOCKED)


def run_all(person: Person, count: int) -> None:
    """Run all cells, and wait until the last has."""
    person.execute("notebook:run-all-cells")
    expect(person.cell(count - 1)).to_contain_text("all done")


def test_outputs_of_a_plain_kernel_run(person: Person, notebook: Callable[..., str]) -> None:
    sources = [output.source(name) for name, output in OUTPUTS.items()]
    person.open(notebook(*sources, "print('all', 'done')"))
    run_all(person, len(sources) + 1)
    for index in range(len(sources)):
        person.cell(index).scroll_into_view_if_needed()
    expected = sorted(OUTPUTS)
    try:
        person.page.wait_for_function(f"count => {HACKED}.length >= count", arg=len(expected))
    finally:
        assert person.page.evaluate(HACKED) == expected
    expect(blocked(person.notebook)).to_have_count(0)


def test_no_output_of_a_sandboxed_kernel_runs_and_each_has_its_card(
    person: Person, notebook: Callable[..., str], boxed: str
) -> None:
    sources = [output.source(name) for name, output in OUTPUTS.items()]
    person.open(notebook(*sources, "print('all', 'done')", kernel=boxed))
    run_all(person, len(sources) + 1)
    for index, output in enumerate(OUTPUTS.values()):
        person.cell(index).scroll_into_view_if_needed()
        if output.kind:
            expect(person.cell(index).get_by_role("group", name=f"Blocked output: {output.kind}")).to_be_visible()
    assert person.page.evaluate(HACKED) == []


GOOD = {
    "plot": "import matplotlib.pyplot as plt\n%matplotlib inline\nplt.plot([1, 2, 3]);",
    "drawing": "%config InlineBackend.figure_formats = ['svg']\nplt.plot([3, 2, 3]);",
    "table": "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': [3, 4]})",
    "bar": "from tqdm.notebook import tqdm\nfor _ in tqdm(range(5)): pass",
    "text bar": "from tqdm import tqdm as plain\nfor _ in plain(range(5)): pass",
    "interact": "import ipywidgets as w\n@w.interact(x=(0, 9))\ndef f(x=3): print('x is', x)",
    "widgets": "w.VBox([w.Button(description='go'), w.Text('a text'), w.Dropdown(options=['one']),"
    " w.HTML('<b>bold</b>'), w.ToggleButtons(options=['left', 'right']),"
    " w.Tab([w.Label('in a tab')], titles=['first'])])",
    "text": "from IPython.display import JSON, Latex, Markdown\n"
    "display(Latex('$x^2$'), Markdown('**strong** and |a|'), JSON({'key': 1}))",
    "error": "1 / 0",
}


def test_plots_tables_progress_bars_and_standard_widgets_work_as_ever(
    person: Person, notebook: Callable[..., str], boxed: str
) -> None:
    person.open(notebook(*GOOD.values(), kernel=boxed))
    cells = {name: person.cell(index).locator(".jp-Cell-outputArea") for index, name in enumerate(GOOD)}
    person.execute("notebook:run-all-cells")
    expect(cells["error"]).to_contain_text("ZeroDivisionError")
    for name in ("plot", "drawing"):
        image = cells[name].locator(".jp-OutputArea-output img")
        expect(image).to_be_visible()
        person.page.wait_for_function("image => image.naturalWidth > 100", arg=image.element_handle())
    expect(cells["table"].get_by_role("table")).to_contain_text("b")
    expect(cells["bar"].locator(".progress-bar")).to_be_visible()
    expect(cells["bar"]).to_contain_text("100%")
    expect(cells["text bar"]).to_contain_text("5/5")
    expect(cells["widgets"].get_by_role("button", name="go")).to_be_visible()
    expect(cells["widgets"].get_by_text("bold")).to_be_visible()
    expect(cells["widgets"].get_by_text("in a tab")).to_be_visible()
    expect(cells["text"].get_by_text("strong")).to_be_visible()
    expect(cells["text"].locator("mjx-container")).to_be_visible()
    slider = cells["interact"].get_by_role("slider")
    slider.focus()
    person.keyboard.press("ArrowRight")
    expect(cells["interact"]).to_contain_text("x is 4")
    expect(blocked(person.notebook)).to_have_count(0)


def allow(person: Person, card: Locator) -> None:
    """Allow an output with the keyboard; that of a widget in a dialog."""
    review = card.get_by_role("button", name="Review in a dialog")
    expect(card.get_by_role("button").first).to_be_visible()
    if review.count():
        review.press("Enter")
        card = blocked(person.page.get_by_role("dialog"))
    button = card.get_by_role("button", name="Run this output", exact=True)
    button.focus()
    press(button, "Enter")


def test_allowed_output_runs_and_no_other_does_and_nothing_of_it_is_saved(
    person: Person, notebook: Callable[..., str], lab: Lab, boxed: str
) -> None:
    script = OUTPUTS["script"]
    path = notebook(
        OUTPUTS["javascript"].source("first"), script.source("second"), script.source("third"), kernel=boxed
    )
    person.open(path)
    person.run(0, 1, 2)
    for index in range(3):
        expect(blocked(person.cell(index))).to_be_visible()
    person.edit(1)
    allow(person, blocked(person.cell(0)))
    person.page.wait_for_function(f"{HACKED}.length === 1")
    expect(blocked(person.cell(0))).to_have_count(0)
    expect(person.cell(1)).to_be_focused()  # where the person was
    allow(person, blocked(person.cell(2)))
    person.page.wait_for_function(f"{HACKED}.length === 2")
    assert person.page.evaluate(HACKED) == ["first", "third"]
    expect(blocked(person.cell(1))).to_be_visible()
    person.run(0)
    expect(blocked(person.cell(0))).to_be_visible()
    person.save()
    for cell in lab.read_notebook(path)["cells"]:
        assert not cell["metadata"].get("trusted")


def test_script_cannot_allow_an_output(person: Person, notebook: Callable[..., str], boxed: str) -> None:
    person.open(notebook(OUTPUTS["javascript"].source("one"), kernel=boxed))
    person.run(0)
    button = blocked(person.cell(0)).get_by_role("button")
    expect(button).to_have_attribute("aria-disabled", "false")
    button.evaluate(
        """button => {
          button.click();
          for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
            button.dispatchEvent(new MouseEvent(type, {bubbles: true, cancelable: true, detail: 1, view: window}));
          }
          for (const type of ['keydown', 'keypress', 'keyup']) {
            button.dispatchEvent(new KeyboardEvent(type, {bubbles: true, key: 'Enter', code: 'Enter'}));
          }
        }"""
    )
    expect(button).to_be_visible()
    assert person.page.evaluate(HACKED) == []
    button.click()
    person.page.wait_for_function(f"{HACKED}.length === 1")


def test_allowed_output_that_becomes_another_is_blocked_again(
    person: Person, notebook: Callable[..., str], boxed: str
) -> None:
    source = OUTPUTS["script"].source("first").splitlines()
    update = OUTPUTS["script"].source("second").splitlines()[-1]
    person.open(
        notebook(
            f"{source[0]}\nhandle = display({source[1]}, display_id=True)", f"handle.update({update})", kernel=boxed
        )
    )
    person.run(0)
    allow(person, blocked(person.cell(0)))
    person.page.wait_for_function(f"{HACKED}.length === 1")
    person.run(1)
    expect(blocked(person.cell(0))).to_be_visible()
    assert person.page.evaluate(HACKED) == ["first"]


def test_allowed_widget_runs_and_speaks_with_its_kernel_and_its_twin_does_not_run(
    person: Person, notebook: Callable[..., str], boxed: str
) -> None:
    counter = """import anywidget, traitlets, ipywidgets as w
class Counter(anywidget.AnyWidget):
    _esm = '''export default { render({model, el}) {
        (window.hacked ||= []).push("counter");
        const show = () => { el.textContent = "count is " + model.get("count"); };
        model.on("change:count", show);
        show();
    } }'''
    count = traitlets.Int(1).tag(sync=True)
one, two = Counter(), Counter()
w.VBox([one, two])"""
    person.open(notebook(counter, "one.count = 7", "one.count = 8", kernel=boxed))
    person.run(0)
    expect(blocked(person.cell(0))).to_have_count(2)
    person.run(1)
    allow(person, blocked(person.cell(0)).first)
    expect(person.cell(0)).to_contain_text("count is 7")
    expect(blocked(person.cell(0))).to_have_count(1)
    person.run(2)
    expect(person.cell(0)).to_contain_text("count is 8")
    assert person.page.evaluate("window.hacked.length") == 1


@pytest.mark.parametrize("kernel", ["plain", "sandboxed"])
def test_saved_output_opened_again_with_a_plain_kernel_runs_only_if_a_plain_kernel_made_it(
    person: Person, new_person: Callable[[], Person], notebook: Callable[..., str], lab: Lab, boxed: str, kernel: str
) -> None:
    names = ("javascript", "script", "html-widget", "output-widget")
    sources = [OUTPUTS[name].source(name) for name in names]
    settings = {"saveState": True}
    with lab.settings("@jupyter-widgets/jupyterlab-manager:plugin", settings):
        path = notebook(*sources, "print('all', 'done')", kernel=boxed if kernel == "sandboxed" else "python3")
        person.open(path)
        run_all(person, len(sources) + 1)
        person.save()
    lab.shut_down_kernels()
    again = lab.read_notebook(path)
    again["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    if kernel == "sandboxed":
        lab.ask(f"api/contents/{path}", {"type": "notebook", "content": again}, "PUT")
    reader = new_person()
    reader.open(path)
    for index in range(len(sources)):
        reader.cell(index).scroll_into_view_if_needed()
    if kernel == "plain":
        reader.page.wait_for_function(f"{HACKED}.length > 0")
    else:
        expect(reader.cell(1).locator(".jp-RenderedHTML")).to_be_attached()
        assert reader.page.evaluate(HACKED) == []


def test_widget_that_was_saved_with_a_notebook_does_not_run(
    person: Person, notebook: Callable[..., str], lab: Lab, boxed: str
) -> None:
    path = notebook("1 + 1", kernel=boxed)
    saved = lab.read_notebook(path)
    state = {
        "_model_module": "anywidget",
        "_model_module_version": "~0.11.*",
        "_model_name": "AnyModel",
        "_view_module": "anywidget",
        "_view_module_version": "~0.11.*",
        "_view_name": "AnyView",
        "_esm": "export default { initialize() { (window.hacked ||= []).push('saved'); } }",
        "_anywidget_id": "saved",
    }
    model = {"model_name": "AnyModel", "model_module": "anywidget", "model_module_version": "~0.11.*", "state": state}
    widgets = {
        "application/vnd.jupyter.widget-state+json": {"version_major": 2, "version_minor": 0, "state": {"a": model}}
    }
    saved["metadata"]["widgets"] = widgets
    lab.ask(f"api/contents/{path}", {"type": "notebook", "content": saved}, "PUT")
    person.open(path)
    person.run(0)
    expect(person.cell(0)).to_contain_text("2")
    person.page.wait_for_function("window.jupyterapp.shell.currentWidget.sessionContext.isReady")
    assert person.page.evaluate(HACKED) == []


def test_console_of_a_sandboxed_kernel_blocks_as_a_notebook_does(
    person: Person, notebook: Callable[..., str], boxed: str
) -> None:
    path = notebook("1", kernel=boxed)
    person.open(path)
    person.page.evaluate(
        """async ([code, path]) => {
          const app = window.jupyterapp;
          const {kernel} = app.shell.currentWidget.sessionContext.session;
          const {id, name} = kernel;
          const panel = await app.commands.execute('console:create', {path, kernelPreference: {id, name}});
          await panel.sessionContext.ready;
          await panel.console.inject(code);
        }""",
        [OUTPUTS["javascript"].source("console"), path],
    )
    expect(blocked(person.page.locator(".jp-CodeConsole"))).to_be_visible()
    assert person.page.evaluate(HACKED) == []


def test_new_view_of_an_output_has_a_card_of_its_own(person: Person, notebook: Callable[..., str], boxed: str) -> None:
    person.open(notebook(OUTPUTS["javascript"].source("view"), OUTPUTS["anywidget"].source("widget"), kernel=boxed))
    person.run(0)
    expect(blocked(person.cell(0))).to_be_visible()
    person.edit(0)
    person.execute("notebook:create-output-view")
    view = person.page.locator("[id^='LinkedOutputView']")
    expect(blocked(view)).to_be_visible()
    assert person.page.evaluate(HACKED) == []


def test_notebook_7_blocks_too(person: Person, notebook: Callable[..., str], boxed: str) -> None:
    sources = [OUTPUTS[name].source(name) for name in ("javascript", "handler", "html-widget", "anywidget")]
    person.open(notebook(*sources, kernel=boxed), front="notebooks/")
    person.run(*range(len(sources)))
    for index in range(len(sources)):
        expect(blocked(person.cell(index))).to_be_visible()
    assert person.page.evaluate(HACKED) == []
    allow(person, blocked(person.cell(0)))
    person.page.wait_for_function(f"{HACKED}.length === 1")


#: The page waits for the server's word for 5 seconds only (`PATIENCE` in `gate.ts`); a busy machine may need more.
ENDLESS_PATIENCE = """
const later = window.setTimeout;
window.setTimeout = (run, delay, ...more) => later(run, delay === 5000 ? 600_000 : delay, ...more);
"""


@pytest.mark.usefixtures("boxed")
def test_nothing_runs_before_the_server_said_what_kernel_it_is(person: Person, notebook: Callable[..., str]) -> None:
    sources = (OUTPUTS["javascript"].source("one"), OUTPUTS["script"].source("two"), "print('all', 'done')")
    person.page.add_init_script(ENDLESS_PATIENCE)
    held = HeldRequests(person.page, "**/jupyter-agentbox/kernels/*")
    person.open(notebook(*sources))
    run_all(person, 3)
    assert person.page.evaluate(HACKED) == []
    held.release()
    person.page.wait_for_function(f"{HACKED}.length === 2")
    expect(blocked(person.notebook)).to_have_count(0)


@pytest.mark.usefixtures("boxed")
def test_nothing_runs_while_the_server_does_not_say_and_what_waited_runs_once_after_that(
    person: Person, notebook: Callable[..., str]
) -> None:
    person.page.route("**/jupyter-agentbox/kernels/*", lambda route: route.fulfill(status=500, json={}))
    person.open(notebook(OUTPUTS["javascript"].source("one")))
    person.run(0)
    expect(blocked(person.cell(0))).to_be_visible()
    assert person.page.evaluate(HACKED) == []
    person.page.unroute("**/jupyter-agentbox/kernels/*")
    # It is asked again less and less often.
    person.page.wait_for_function(f"{HACKED}.length === 1", timeout=90_000)
    expect(blocked(person.notebook)).to_have_count(0)
    assert person.page.evaluate("window.hacked.length") == 1


@pytest.mark.usefixtures("boxed")
def test_restart_of_a_plain_kernel_runs_no_output_again_and_takes_no_trust(
    person: Person, notebook: Callable[..., str], lab: Lab
) -> None:
    count = "window.counted = (window.counted ?? 0) + 1"
    path = notebook(f"from IPython.display import Javascript\nJavascript({count!r})", "print('all', 'done')")
    person.open(path)
    run_all(person, 2)
    person.page.wait_for_function("window.counted === 1")
    for _ in range(2):
        person.page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
        person.await_kernel()
        person.run(1)
        expect(person.cell(1)).to_contain_text("all done")
    assert person.page.evaluate("window.counted") == 1
    person.save()
    assert lab.read_notebook(path)["cells"][0]["metadata"]["trusted"] is True


#: Names and styles of the page, in each place where a kernel can put some.
LOOKS = {
    "html": 'from IPython.display import HTML\nHTML(\'<div class="lm-DockPanel-overlay"'
    ' style="position: relative; margin-top: -99px; color: red" id="main">looks</div>\')',
    "markdown": "from IPython.display import Markdown\nMarkdown('<p class=\"lm-DockPanel-overlay\">looks</p>')",
    "html-widget": 'import ipywidgets as w\nw.HTML(\'<div class="lm-DockPanel-overlay"'
    ' style="position: relative">looks</div>\')',
    "description": "import ipywidgets as w\nw.Text(description='<b class=\"lm-DockPanel-overlay\">looks</b>',"
    " description_allow_html=True)",
    "dom-class": "import ipywidgets as w\nx = w.Label('looks')\nx.add_class('lm-DockPanel-overlay')\n"
    "x.add_class('jp-AgentBox-card')\nx",
    "layout": "import ipywidgets as w\nx = w.Label('looks')\nx.layout.margin = '0 0 -150px 0'\nx",
    "style": "import ipywidgets as w\nx = w.HTML('looks')\nx.style.background = 'url(data:,)'\nx",
}
#: What is like the page in the outputs of the cells.
LIKE_THE_PAGE = """() => [...document.querySelectorAll('.jp-OutputArea-output *')].filter(element =>
  element.matches('.lm-DockPanel-overlay, .jp-AgentBox-card, #main, [data-jupyter-id=main]') ||
  /position|-\\d|url/.test(element.getAttribute('style') ?? '')).map(element => element.outerHTML)"""


@pytest.mark.parametrize("kernel", ["plain", "sandboxed"])
def test_nothing_of_a_sandboxed_kernel_looks_like_a_part_of_the_page(
    person: Person, notebook: Callable[..., str], boxed: str, kernel: str
) -> None:
    path = notebook(*LOOKS.values(), "print('all', 'done')", kernel=boxed if kernel == "sandboxed" else "python3")
    person.open(path)
    run_all(person, len(LOOKS) + 1)
    for index in range(len(LOOKS)):
        expect(person.cell(index).locator(".jp-OutputArea-output").get_by_text("looks")).to_be_visible()
    if kernel == "plain":  # a widget has its looks some time after its text
        person.page.wait_for_function(f"count => ({LIKE_THE_PAGE})().length >= count", arg=len(LOOKS) - 1)
    else:
        assert person.page.evaluate(LIKE_THE_PAGE) == []
        text = person.cell(0).locator(".jp-OutputArea-output").get_by_text("looks")
        assert text.evaluate("element => getComputedStyle(element).color") == "rgb(255, 0, 0)"


def test_output_stays_blocked_when_a_plain_kernel_takes_the_place_of_the_sandboxed(
    person: Person, notebook: Callable[..., str], boxed: str
) -> None:
    person.open(notebook(OUTPUTS["javascript"].source("one"), OUTPUTS["output-widget"].source("two"), kernel=boxed))
    person.run(0, 1)
    for index in range(2):
        expect(blocked(person.cell(index))).to_be_visible()
    person.page.evaluate(
        "window.jupyterapp.shell.currentWidget.sessionContext.changeKernel({name: 'python3'}).then(() => null)"
    )
    person.await_kernel()
    person.page.evaluate("() => { void window.jupyterapp.commands.execute('notebook:trust'); }")
    person.page.get_by_role("dialog").get_by_role("button", name="Trust").click()
    expect(blocked(person.cell(0))).to_be_visible()
    assert person.page.evaluate(HACKED) == []


#: Says that the page should load a module for a comm.
COMM_MODULE = """kernel = get_ipython().kernel
content = {"comm_id": "c", "target_name": "hacked", "target_module": "evil", "data": {}}
kernel.session.send(kernel.iopub_socket, "comm_open", content, parent=kernel.get_parent("shell"), ident=b"comm-c")
print("all", "done")"""


@pytest.mark.parametrize("kernel", ["plain", "sandboxed"])
def test_comm_cannot_name_a_module_to_load(
    person: Person, notebook: Callable[..., str], boxed: str, kernel: str
) -> None:
    probe = OUTPUTS["javascript"].source("probe")
    person.open(notebook(probe, COMM_MODULE, kernel=boxed if kernel == "sandboxed" else "python3"))
    # Until the page knows what kernel it is, a plain one is treated as the other.
    person.run(0)
    if kernel == "plain":
        person.page.wait_for_function(f"{HACKED}.length === 1")
    else:
        expect(blocked(person.cell(0))).to_be_visible()
    person.page.evaluate(
        """() => {
          window.requirejs = ([name], found) => {
            (window.hacked ||= []).push(name);
            found({hacked: () => {}});
          };
        }"""
    )
    person.run(1)
    expect(person.cell(1)).to_contain_text("all done")
    if kernel == "plain":
        person.page.wait_for_function(f"{HACKED}.length === 2")
    else:
        assert person.page.evaluate(HACKED) == []


def test_error_of_a_broken_widget_is_text(person: Person, notebook: Callable[..., str], boxed: str) -> None:
    name = f'<img src="data:," onerror="{HACK}">'
    code = f"import ipywidgets as w\nbroken = w.Button()\nbroken._view_name = {name!r}\nbroken"
    person.open(notebook(code, kernel=boxed))
    person.run(0)
    person.cell(0).get_by_text("Click to show javascript error").click()
    expect(person.cell(0)).to_contain_text("<img src=")
    assert person.page.evaluate(HACKED) == []


@pytest.mark.parametrize("attack", [POST_AS_JAVASCRIPT, POST_AS_ANYWIDGET], ids=["javascript", "anywidget"])
def test_output_cannot_decide_with_the_session_of_the_person(
    person: Person, notebook: Callable[..., str], lab: Lab, boxed: str, attack: str
) -> None:
    path = notebook(f"{attack}{ASK}", kernel=boxed)
    person.open(path)
    person.run(0)
    expect(blocked(person.cell(0))).to_be_visible()
    expect(person.card().get_by_role("button", name="Allow once")).to_have_attribute("aria-disabled", "false")
    (request,) = lab.approvals(path)
    assert request["status"] == "pending"
    allow(person, blocked(person.cell(0)))
    expect(person.card()).to_contain_text("Done in")
