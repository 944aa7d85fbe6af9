"""Outputs that make a browser load something from an address, and a server that notes who asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Way -> the code of a cell. `URL` stands for an address that carries something out.
ADDRESSES = {
    "html-picture": "from IPython.display import HTML\nHTML('<img src=\"URL\">')",
    "html-style": "from IPython.display import HTML\nHTML('<p style=\"background: url(URL)\">a</p>')",
    "markdown-picture": "from IPython.display import Markdown\nMarkdown('![a](URL)')",
    "markdown-heading": "from IPython.display import Markdown\nMarkdown('# title ![a](URL)')",
    "latex": "from IPython.display import Latex\nLatex(r'$\\mmlToken{mglyph}[src=\"URL\"]{}$')",
    "mermaid-picture": "from IPython.display import Markdown\n"
    "Markdown('```mermaid\\nflowchart LR\\n  A[\"<img src=URL>\"] --> B\\n```\\n')",
    "mermaid-style": 'from IPython.display import Markdown\nMarkdown(\'```mermaid\\n%%{init: {"themeCSS":'
    ' "* { background-image: url(URL) }"}}%%\\nflowchart LR\\n  A --> B\\n```\\n\')',
    "html-widget-style": "import ipywidgets as w\nx = w.HTML('a')\nx.style.background = 'url(URL)'\nx",
    "label-style": "import ipywidgets as w\nx = w.Label('a')\nx.style.background = 'url(URL)'\nx",
    "checkbox-style": "import ipywidgets as w\nx = w.Checkbox()\nx.style.background = 'url(URL)'\nx",
    "image": "import ipywidgets as w\nw.Image(value=b'URL', format='url')",
    "video": "import ipywidgets as w\nw.Video(value=b'URL', format='url', autoplay=True)",
    "audio": "import ipywidgets as w\nw.Audio(value=b'URL', format='url', autoplay=True)",
    "description": "import ipywidgets as w\nw.IntSlider(description='<img src=URL>', description_allow_html=True)",
    "html-description": "import ipywidgets as w\nw.HTML('a', description='<img src=URL>', description_allow_html=True)",
}

#: What stands in the notebook's file: a Markdown cell, which JupyterLab renders when the notebook is opened.
CELL = "markdown-cell"
CELL_SOURCE = "![a](URL)"


class Listener:
    """Another origin.

    Parameters
    ----------
    port : int
        Where it listens.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/"
        self.asked: set[str] = set()
        self._news = threading.Condition()

    def address(self, way: str) -> str:
        """Return the address for a way."""
        return f"{self.url}{way}"

    def note(self, path: str) -> None:
        """Note what was asked for."""
        with self._news:
            self.asked.add(path.strip("/"))
            self._news.notify_all()

    def await_all(self, ways: set[str], seconds: float) -> set[str]:
        """Wait until all ways were taken; return those that were not."""
        with self._news:
            self._news.wait_for(lambda: ways <= self.asked, seconds)
        return ways - self.asked


@contextmanager
def listening() -> Iterator[Listener]:
    """Serve another origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listener.note(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            del arguments

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        listener = Listener(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield listener
        finally:
            server.shutdown()
            thread.join()
