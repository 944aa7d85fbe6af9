"""Askers: the people and programs that the server has observed running code in a kernel that called a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .reviewers import Reviewer, ReviewerKind, Via


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """A user or service that ran code in a kernel, as the server observed it.

    Parameters
    ----------
    name : str
        The user's or service's name, from the identity of their session or token; empty if there is none.
    via : Via
        How their request reached the server.
    kind : ReviewerKind
        Whether the name is a user's or a service's.
    display_name : str
        Display name from the identity provider; empty if there is none.
    token_note : str
        As in `Reviewer`.
    """

    name: str = ""
    via: Via = Via.UNKNOWN
    kind: ReviewerKind = ReviewerKind.USER
    display_name: str = ""
    token_note: str = ""

    @classmethod
    def of(cls, reviewer: Reviewer) -> Asker:
        """Return a reviewer as an asker."""
        return cls(
            name=reviewer.name,
            via=reviewer.via,
            kind=reviewer.kind,
            display_name=reviewer.display_name,
            token_note=reviewer.token_note,
        )

    @property
    def in_words(self) -> str:
        """The asker, for records that people read. The name may be any text."""
        if not self.name:
            return "a program with a token" if self.via is Via.API_TOKEN else "somebody unknown"
        return Reviewer(
            name=self.name, via=self.via, kind=self.kind, display_name=self.display_name, token_note=self.token_note
        ).in_words

    def to_json(self) -> dict[str, str | None]:
        """Return the asker as in the REST API and in records."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "display_name": self.display_name or None,
            "via": self.via.value,
            "token_note": self.token_note or None,
        }


def asker_from_json(value: Mapping[str, Any]) -> Asker:
    """Read the result of `Asker.to_json`.

    Raises
    ------
    KeyError, TypeError, ValueError
    """
    return Asker(
        name=value["name"],
        kind=ReviewerKind(value["kind"]),
        display_name=value["display_name"] or "",
        via=Via(value["via"]),
        token_note=value.get("token_note") or "",  # earlier releases stored none
    )


def name_of(askers: Sequence[Asker]) -> str | None:
    """Return the asker's name if there is exactly one; ``None`` if there are several, or none is known."""
    names = {(asker.kind, asker.name) for asker in askers}
    return askers[0].name or None if len(names) == 1 else None


def in_words(askers: Sequence[Asker]) -> str:
    """Return the askers, for people: of several, any may have made the call. Empty if unknown."""
    return " or ".join(dict.fromkeys(asker.in_words for asker in askers))
