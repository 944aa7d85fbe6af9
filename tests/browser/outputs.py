"""Outputs that try to run code in the page. Each says in `window.hacked` that it did."""

from __future__ import annotations

import json
from dataclasses import dataclass

#: What the code of an output does, given the attack's name.
_DO = "(window.hacked ||= []).push({name!r});"


@dataclass(frozen=True)
class Output:
    """One output.

    Parameters
    ----------
    code : str
        Makes it, in a kernel; `SCRIPT` stands for what it would run.
    kind : str
        What its card says that it is; empty if it has no card.
    """

    code: str
    kind: str = ""

    def source(self, name: str) -> str:
        """Return the code of a cell."""
        return self.code.replace("SCRIPT", json.dumps(_DO.format(name=name)))


BUNDLE = "from IPython.display import display\n"
WIDGETS = "import ipywidgets as w\nfrom IPython.display import display\n"
ANYWIDGET = """import anywidget, traitlets
class Evil(anywidget.AnyWidget):
    _esm = "export default { render({el}) { el.textContent = 'it runs'; " + SCRIPT + " } }"
"""
IMAGE = "'<img src=\"data:,\" onerror=\\'' + SCRIPT.replace(chr(39), '&#39;') + '\\'>'"

OUTPUTS = {
    "javascript": Output("from IPython.display import Javascript\nJavascript(SCRIPT)", "JavaScript"),
    "text-javascript": Output(BUNDLE + "display({'text/javascript': SCRIPT}, raw=True)", "JavaScript"),
    "script": Output("from IPython.display import HTML\nHTML('<script>' + SCRIPT + '</script>')", "HTML with a script"),
    "handler": Output(f"from IPython.display import HTML\nHTML({IMAGE})", "HTML with event handlers"),
    "frame": Output(
        "from IPython.display import HTML\nimport html\n"
        "inner = html.escape('<script>parent.eval(' + repr(SCRIPT) + ')</script>')\n"
        "HTML('<iframe srcdoc=\"' + inner + '\"></iframe>')",
        "HTML with a frame",
    ),
    "svg": Output(
        "from IPython.display import HTML\n"
        'HTML(\'<svg xmlns="http://www.w3.org/2000/svg"><image href="x:" onerror=\\\'\''
        " + SCRIPT.replace(chr(39), '&#39;') + '\\'/></svg>')",
        "HTML with event handlers",
    ),
    "isolated": Output(
        BUNDLE
        + "display({'text/html': '<script>parent.eval(' + repr(SCRIPT) + ')</script>'}, metadata={'isolated': True},"
        " raw=True)"
    ),
    "markdown": Output(
        f"from IPython.display import Markdown\nMarkdown('# Title\\n\\n' + {IMAGE})", "HTML with event handlers"
    ),
    "html-widget": Output(f"{WIDGETS}w.HTML('before ' + {IMAGE})", "HTML with event handlers"),
    "html-math-widget": Output(f"{WIDGETS}w.HTMLMath('before ' + {IMAGE})", "HTML with event handlers"),
    "anywidget": Output(f"{ANYWIDGET}Evil()", "Widget from module anywidget"),
    "anywidget-without-a-view": Output(
        "import anywidget\nclass Quiet(anywidget.AnyWidget):\n"
        "    _esm = 'export default { initialize() { ' + SCRIPT + ' } }'\nquiet = Quiet()\n'made'"
    ),
    "anywidget-in-a-box": Output(
        f"{ANYWIDGET}{WIDGETS}w.VBox([w.Label('above'), Evil()])", "Widget from module anywidget"
    ),
    "output-widget": Output(
        f"{WIDGETS}from IPython.display import Javascript\nout = w.Output()\ndisplay(out)\n"
        "with out:\n    display(Javascript(SCRIPT))",
        "JavaScript",
    ),
    "appended-to-an-output-widget": Output(
        f"{WIDGETS}from IPython.display import HTML\nout2 = w.Output()\ndisplay(out2)\n"
        f"out2.append_display_data(HTML({IMAGE}))",
        "HTML with event handlers",
    ),
    "update": Output(
        "from IPython.display import HTML, display\nhandle = display(HTML('harmless'), display_id=True)\n"
        f"handle.update(HTML({IMAGE}))",
        "HTML with event handlers",
    ),
    "unknown-type-first": Output(
        BUNDLE + "display({'application/javascript': SCRIPT, 'text/html': '<b>harmless</b>'}, raw=True)"
    ),
}

#: Looks for requests of a notebook and allows them, with the session of whoever looks at the page.
POST = """
const token = document.cookie.match(/_xsrf=([^;]+)/)[1];
window.posting = setInterval(async () => {
  const found = await (await fetch('/jupyter-agentbox/approvals?status=pending')).json();
  for (const {id, call} of found.approvals) {
    await fetch(`/jupyter-agentbox/approvals/${id}/decision`, {
      method: 'POST',
      headers: {'X-XSRFToken': token, 'Content-Type': 'application/json'},
      body: JSON.stringify({decision: 'allow_once', digest: call.digest}),
    });
  }
}, 100);
"""
POST_AS_JAVASCRIPT = f"from IPython.display import Javascript\ndisplay(Javascript({POST!r}))\n"
POST_AS_ANYWIDGET = f"""import anywidget
class Poster(anywidget.AnyWidget):
    _esm = "export default {{ initialize() {{" + {POST!r} + "}} }}"
display(Poster())
"""
ASK = "from jupyter_agentbox import tools\ntools.shop.list_orders(limit=1)"
