"""HTML tables: no value becomes markup, and a message below one is whole."""

from __future__ import annotations

from jupyter_agentbox.kernel.tables import html_table


def test_a_note_is_whole_and_shows_code_as_code() -> None:
    long = "no server answers, because " + "x" * 500
    html = html_table(("server",), [], note=f"`?` after <b>a tool</b>: {long}")
    assert html.endswith(f"<p><code>?</code> after &lt;b&gt;a tool&lt;/b&gt;: {long}</p>")


def test_a_cell_is_cut() -> None:
    assert "x" * 121 not in html_table(("server",), [("x" * 500,)])


def test_a_table_without_a_note_ends_with_the_table() -> None:
    assert html_table(("server",), []).endswith("</table>")
