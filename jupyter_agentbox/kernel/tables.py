"""HTML tables of records, servers and tools. Their text is untrusted, so it is escaped and made visible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from jupyter_agentbox.core.text import one_line

#: Maximum number of rows; a line below says if there are more.
_MOST_ROWS: Final = 60
_MOST_COLUMNS: Final = 20
#: Maximum length of a cell's text, in characters.
_LONGEST: Final = 120
#: Maximum length of the line below a table, in characters.
_LONGEST_NOTE: Final = 2_000

_CODE: Final = re.compile("`([^`]+)`")


def html_table(headers: Sequence[str], rows: Iterable[Sequence[Any]], *, note: str = "") -> str:
    """Return an HTML table in which no value can become markup.

    Parameters
    ----------
    headers : sequence of str
        The column headers.
    rows : iterable of sequence
        The cells; numbers are right-aligned.
    note : str
        A line below the table; what stands between backticks is shown as code.
    """
    head = "".join(f"<th>{_text(header)}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    line = _CODE.sub(r"<code>\1</code>", escape(one_line(note, _LONGEST_NOTE)))
    below = f"<p>{line}</p>" if line else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def table_of(records: Sequence[Any]) -> str | None:
    """Return a list of JSON objects as a table; ``None`` if it is not one, or is unsuitable for a table."""
    if not records or not all(isinstance(record, Mapping) for record in records):
        return None
    columns: dict[str, None] = {}
    for record in records[:_MOST_ROWS]:
        columns.update(dict.fromkeys(record))
    if not 0 < len(columns) <= _MOST_COLUMNS:
        return None
    rows = [[record.get(column, "") for column in columns] for record in records[:_MOST_ROWS]]
    left = len(records) - len(rows)
    return html_table(list(columns), rows, note=f"{len(rows)} of {len(records)} rows" if left else "")


def _cell(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'<td style="text-align: {"right" if is_number else "left"}">{_text(value)}</td>'


def _text(value: Any) -> str:
    if value is None:
        return ""
    return escape(one_line(value if isinstance(value, str) else str(value), _LONGEST))
