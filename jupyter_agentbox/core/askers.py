"""Who had the code run that called a tool: whom the server saw send code to its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .reviewers import Reviewer, ReviewerKind, Via


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Somebody who had code run in a kernel, as the server observed it.

    Parameters
    ----------
    name : str
        The user's or service's name, by the identity of their session or token; empty if there is none.
    via : Via
        The way they came.
    kind : ReviewerKind
        Whose name it is.
    display_name : str
        What people call them, if the identity provider has a name for that; else empty.
    """

    name: str = ""
    via: Via = Via.UNKNOWN
    kind: ReviewerKind = ReviewerKind.USER
    display_name: str = ""

    @classmethod
    def of(cls, reviewer: Reviewer) -> Asker:
        """Return somebody who also answers."""
        return cls(name=reviewer.name, via=reviewer.via, kind=reviewer.kind, display_name=reviewer.display_name)

    @property
    def in_words(self) -> str:
        """Who it is, for records that people read. The name may be any text."""
        if not self.name:
            return "a program with a token" if self.via is Via.API_TOKEN else "somebody unknown"
        return Reviewer(name=self.name, via=self.via, kind=self.kind, display_name=self.display_name).in_words

    def to_json(self) -> dict[str, str | None]:
        """Return it as the REST API sends it, and as records keep it."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "display_name": self.display_name or None,
            "via": self.via.value,
        }


def asker_from_json(value: Mapping[str, Any]) -> Asker:
    """Read what `Asker.to_json` gave.

    Raises
    ------
    KeyError, TypeError, ValueError
    """
    return Asker(
        name=value["name"],
        kind=ReviewerKind(value["kind"]),
        display_name=value["display_name"] or "",
        via=Via(value["via"]),
    )


def name_of(askers: Sequence[Asker]) -> str | None:
    """Return whose name it is if it can be nobody else's; ``None`` if there are several, or none is known."""
    names = {(asker.kind, asker.name) for asker in askers}
    return askers[0].name or None if len(names) == 1 else None


def in_words(askers: Sequence[Asker]) -> str:
    """Return who they are, for people: of several, any may have asked. Empty if it is not known."""
    return " or ".join(dict.fromkeys(asker.in_words for asker in askers))
