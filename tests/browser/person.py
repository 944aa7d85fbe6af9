"""A person at a page: runs cells and looks at cards with what a pointer, a keyboard and a screen reader can reach."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Locator, Page, ViewportSize, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

if TYPE_CHECKING:
    from .lab import Lab

CARD = re.compile("^Approval request: ")


#: The page shows a kernel as idle before it is connected to it; who runs a cell then is asked to choose a kernel.
#: It also shows it as idle after each message on the control channel, as when the subshell of a card is deleted, though
#: a cell still runs; and after a cell that fails the kernel refuses what comes before that cell has ended.
KERNEL_IS_READY = """() => {
  const { sessionContext: context, content } = window.jupyterapp?.shell.currentWidget ?? {};
  const kernel = context?.isReady ? context.session?.kernel : null;
  return kernel?.connectionStatus === 'connected' && kernel.status === 'idle' &&
    !content?.widgets?.some(cell => cell.model.executionState === 'running');
}"""

KERNEL_IS_CONNECTED = """() =>
  window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.connectionStatus === 'connected'"""

#: Until then the page lays itself out as it was left, and closes what was opened meanwhile.
LAYOUT_IS_RESTORED = "() => window.jupyterapp?.restored.then(() => true)"

#: Until then the page draws what the last event changed.
NEXT_FRAMES = """() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go))))"""

#: JupyterLab's address of a notebook; with the name of a layout.
LAB = "lab/workspaces/{}/tree/"

#: Pixels of a page.
SIZE = ViewportSize(width=1280, height=800)

#: A layout for each page, or the next page would be laid out like the last.
_WORKSPACES = itertools.count(1)


class Person:
    """Someone who looks at JupyterLab.

    Parameters
    ----------
    page : Page
        What they look at.
    lab : Lab
        Where it comes from.
    """

    def __init__(self, page: Page, lab: Lab) -> None:
        self.page = page
        self.keyboard = page.keyboard
        self.panel = page.get_by_role("region", name="Approval requests", exact=True)
        self.history = page.get_by_role("region", name="Recent history")
        self.status = page.locator(".jp-AgentBox-status").get_by_role("button")
        self.toasts = page.locator(".Toastify__toast")
        self._lab = lab

    def visit(self) -> None:
        """Open a fresh page, with the launcher."""
        self.page.goto(f"{self._lab.url}lab/workspaces/{next(_WORKSPACES)}?token={self._lab.token}")
        self.page.wait_for_function(LAYOUT_IS_RESTORED)
        expect(self.page.get_by_role("button", name="Python 3 (ipykernel)").first).to_be_visible()

    def open(self, path: str, *, front: str = LAB) -> None:
        """Open a notebook on a fresh page, and wait until its kernel is ready."""
        place = front.format(next(_WORKSPACES))
        self.page.goto(f"{self._lab.url}{place}{path}?token={self._lab.token}")
        self.page.wait_for_function(LAYOUT_IS_RESTORED)
        self.await_kernel()

    def reload(self) -> None:
        """Load the page again, and wait until it is laid out as before."""
        self.page.reload()
        self.page.wait_for_function(LAYOUT_IS_RESTORED)

    def await_kernel(self) -> None:
        """Wait until the notebook in front has a kernel that does nothing."""
        self.page.wait_for_function(KERNEL_IS_READY)

    def await_kernel_of_a_running_cell(self) -> None:
        """Wait until the notebook in front is connected to its kernel, which is busy."""
        self.page.wait_for_function(KERNEL_IS_CONNECTED)

    @property
    def notebook(self) -> Locator:
        """The notebook in front."""
        return self.page.locator(".jp-NotebookPanel:visible")

    def cell(self, index: int) -> Locator:
        """A cell of the notebook in front."""
        return self.notebook.locator(f".jp-Cell[data-windowed-list-index='{index}']")

    def edit(self, index: int) -> None:
        """Put the cursor into a cell."""
        self.cell(index).locator(".jp-Cell-inputArea .cm-content").click()

    def run(self, *indexes: int) -> None:
        """Run cells, as Control+Enter does; later ones wait for earlier ones."""
        for index in indexes:
            self.edit(index)
            self.keyboard.press("Control+Enter")

    def save(self) -> None:
        """Save the notebook in front as it is now, and wait until it is; its code may go on and change it again."""
        self.execute("docmanager:save")

    def card(self, index: int = 0) -> Locator:
        """The card under a cell."""
        return self.cell(index).get_by_role("group", name=CARD)

    def press_letter_for_table(self, cell: Locator) -> None:
        """Press T on the card of a cell that has the focus, as soon as the cell has more requests than cards."""
        expect(cell.get_by_role("button", name="Decide them together in the panel")).to_be_visible()
        expect(cell.locator(".jp-AgentBox-card[data-status=pending]:focus")).to_have_attribute("data-keys", "ready")
        self.keyboard.press("t")

    def open_panel(self) -> None:
        """Open the side panel with a click on the status bar, and wait until the focus has followed."""
        self.status.click()
        self.await_panel()

    def await_panel(self) -> None:
        """Wait until the side panel is open and the focus has followed: it comes some time after the panel."""
        expect(self.panel).to_be_visible()
        expect(self.page.locator(".jp-AgentBox-panel:focus, .jp-AgentBox-panel :focus")).to_have_count(1)

    def show_tab(self, name: str) -> None:
        """Show a tab of the side panel, which is open: *Waiting*, *History*, *Servers*, *Rules* or *Agents*."""
        tab = self.page.locator(".jp-AgentBox-panel").get_by_role("tab", name=name)
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")

    def item(self, name: str) -> Locator:
        """A request in the panel, by server and tool."""
        return self.panel.get_by_role("listitem", name=name, exact=True)

    def choose_command(self, label: str) -> None:
        """Run a command from the palette, with the keyboard."""
        self.keyboard.press("Control+Shift+C")
        search = self.page.locator(".lm-CommandPalette-input")
        expect(search).to_be_focused()
        self.keyboard.type(label)
        expect(self.page.locator(".lm-CommandPalette-item.lm-mod-active")).to_contain_text(label)
        self.keyboard.press("Enter")

    def commands(self) -> list[str]:
        """The ids of all commands of the page."""
        found: list[str] = self.page.evaluate("window.jupyterapp.commands.listCommands()")
        return found

    def execute(self, command: str, **arguments: Any) -> None:
        """Run a command as a program does."""
        run = "([command, args]) => window.jupyterapp.commands.execute(command, args).then(() => null)"
        self.page.evaluate(run, [command, arguments])


#: What was opened is closed unsaved, the areas at the sides are as on a fresh page, and nothing says that code ran.
CLOSE_ALL = """() => {
  const { shell } = window.jupyterapp;
  for (const widget of [...shell.widgets('main')]) {
    widget.dispose();
  }
  const panel = [...shell.widgets('right')].find(({ id }) => id === 'jupyter-agentbox-panel');
  panel.header.widgets.find(widget => widget.hasClass('jp-AgentBox-tabs')).currentIndex = 0;
  shell.collapseRight();
  shell.activateById('filebrowser');
  delete window.hacked;
}"""


class LastingPerson(Person):
    """Someone whose page stays from test to test: to load it costs more than what most tests do there."""

    def __init__(self, page: Page, lab: Lab) -> None:
        super().__init__(page, lab)
        self._is_tidy = False
        self._is_reloaded = False

    def reload(self) -> None:
        """Load the page again. What was open may come back after its layout, so the next test has a fresh page."""
        self._is_reloaded = True
        super().reload()

    def open(self, path: str, *, front: str = LAB) -> None:
        """Open a notebook, on a fresh page unless the last test left this one tidy; wait until its kernel is ready."""
        is_tidy, self._is_tidy, self._is_reloaded = self._is_tidy, False, False
        if is_tidy and front == LAB:
            self.execute("docmanager:open", path=path)
            self.await_kernel()
        else:
            super().open(path, front=front)

    def tidy_up(self) -> None:
        """Close what was opened, and wait until the page shows nothing of the requests of kernels that have ended."""
        self.page.evaluate(CLOSE_ALL)
        self.page.mouse.move(1, 1)
        expect(self.panel).to_be_hidden()
        expect(self.status).to_have_accessible_name("0 requests awaiting approval")
        try:
            expect(self.toasts).to_have_count(0)
        except AssertionError as error:
            raise AssertionError(f"{error}\nNotifications: {self.toasts.all_inner_texts()}") from None
        self._is_tidy = not self._is_reloaded


def await_true(where: Locator, function: str) -> None:
    """Wait until a function of an element is true: what is laid out settles some time after its text is there."""
    where.page.wait_for_function(function, arg=where.element_handle())


def approach(button: Locator) -> None:
    """Bring the pointer to one of a card's buttons, and wait until it can be pressed.

    A card that nobody was near for some seconds is looked at anew when the pointer moves, and is off meanwhile.
    """
    button.scroll_into_view_if_needed()
    button.page.mouse.move(1, 1)  # a click counts for what the pointer went to, not for what came under it
    button.hover()
    button.page.evaluate(NEXT_FRAMES)
    expect(button).to_be_enabled()


def press(button: Locator, key: str) -> None:
    """Press the button with the focus by a key, once it counts: a card is looked at anew when the focus comes to it."""
    expect(button).to_be_focused()
    button.page.evaluate(NEXT_FRAMES)
    expect(button).to_be_enabled()
    button.page.keyboard.press(key)


def await_letters(card: Locator) -> None:
    """Wait until the letters of the card with the focus count, and the buttons that they press."""
    expect(card).to_have_attribute("data-keys", "ready")
    expect(card.get_by_role("button", name="Allow once")).to_be_enabled()


def decide(where: Locator, button: str) -> None:
    """Press one of a card's buttons, which are off while nothing of the card is in view.

    Of the panel's requests, all but the first take two lines until somebody goes to them.
    """
    if (compact := where.locator(".jp-mod-compact")).count() == 1:
        compact.click()
    found = where.get_by_role("button", name=button, exact=True)
    try:
        approach(found)
        found.click()
    except (PlaywrightTimeout, AssertionError) as error:
        shown = where.page.locator(".Toastify__toast").all_inner_texts()
        raise AssertionError(f"{error}\nThe card: {where.inner_text(timeout=1000)}\nNotifications: {shown}") from error
