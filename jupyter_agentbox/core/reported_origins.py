"""The origin of a central tool call, as reported by the user's server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

#: Key in the `_meta` of an MCP call.
ORIGIN_KEY: Final = "jupyter-agentbox/origin"
#: Maximum length of a text, in characters; the rest is cut.
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOrigin:
    """Identifies a call that the Hub service knows of in the record of the user's own server.

    The user controls that server, so this can be false. It is recorded for auditors and read by no rule.

    Parameters
    ----------
    request_id : str
        The request's id on that server.
    kernel_id, notebook_path, cell_id : str or None
        As in `Origin`.
    isolation : str
        The kernel's isolation level; empty if not reported.
    has_own_settings : bool
        As in `Origin`.
    runs : str
        For a call of a user's own tool, the command or address of its server, without secrets.
    """

    request_id: str
    kernel_id: str | None = None
    notebook_path: str | None = None
    cell_id: str | None = None
    isolation: str = ""
    has_own_settings: bool = False
    runs: str = ""

    def to_json(self) -> dict[str, str | bool | None]:
        """Return the origin as JSON, for MCP, the store and the REST API."""
        return {
            "request_id": self.request_id,
            "kernel_id": self.kernel_id,
            "notebook_path": self.notebook_path,
            "cell_id": self.cell_id,
            "isolation": self.isolation or None,
            **({"has_own_settings": True} if self.has_own_settings else {}),
            **({"runs": self.runs} if self.runs else {}),
        }


def origin_from_json(value: object) -> ReportedOrigin | None:
    """Return the origin in an untrusted value; ``None`` if it is not one. Long texts are cut."""
    request_id = _text(value, "request_id")
    if request_id is None or not isinstance(value, Mapping):
        return None
    return ReportedOrigin(
        request_id=request_id,
        kernel_id=_text(value, "kernel_id"),
        notebook_path=_text(value, "notebook_path"),
        cell_id=_text(value, "cell_id"),
        isolation=_text(value, "isolation") or "",
        has_own_settings=value.get("has_own_settings") is True,
        runs=_text(value, "runs") or "",
    )


def origin_in(meta: object) -> ReportedOrigin | None:
    """Return the origin in the `_meta` of an MCP call, if there is one."""
    return origin_from_json(meta.get(ORIGIN_KEY)) if isinstance(meta, Mapping) else None


def _text(value: object, name: str) -> str | None:
    text = value.get(name) if isinstance(value, Mapping) else None
    return text[:_LONGEST] if isinstance(text, str) and text else None
