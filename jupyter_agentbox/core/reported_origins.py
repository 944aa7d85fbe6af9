"""Where a call of a central tool came from, as the server of the user says who made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

#: Where it stands in the `_meta` of a call of MCP.
ORIGIN_KEY: Final = "jupyter-agentbox/origin"
#: Characters of a text that are taken of what a server says.
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOrigin:
    """What finds the same call in the records of the user's own server.

    That server is the user's, and may say what is not true. It is kept for auditors: no rule reads it.

    Parameters
    ----------
    request_id : str
        The request there.
    kernel_id, notebook_path, cell_id : str or None
        As in `Origin`.
    isolation : str
        The level of isolation of that kernel; empty if it is not said.
    """

    request_id: str
    kernel_id: str | None = None
    notebook_path: str | None = None
    cell_id: str | None = None
    isolation: str = ""

    def to_json(self) -> dict[str, str | None]:
        """Return it as servers send it, and as the store and the REST API have it."""
        return {
            "request_id": self.request_id,
            "kernel_id": self.kernel_id,
            "notebook_path": self.notebook_path,
            "cell_id": self.cell_id,
            "isolation": self.isolation or None,
        }


def origin_from_json(value: object) -> ReportedOrigin | None:
    """Read what anybody may have sent; ``None`` if it is no such thing. Long texts are cut."""
    request_id = _text(value, "request_id")
    if request_id is None:
        return None
    return ReportedOrigin(
        request_id=request_id,
        kernel_id=_text(value, "kernel_id"),
        notebook_path=_text(value, "notebook_path"),
        cell_id=_text(value, "cell_id"),
        isolation=_text(value, "isolation") or "",
    )


def origin_in(meta: object) -> ReportedOrigin | None:
    """Return what the `_meta` of a call says of where it came from, if anything."""
    return origin_from_json(meta.get(ORIGIN_KEY)) if isinstance(meta, Mapping) else None


def _text(value: object, name: str) -> str | None:
    text = value.get(name) if isinstance(value, Mapping) else None
    return text[:_LONGEST] if isinstance(text, str) and text else None
