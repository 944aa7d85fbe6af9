"""The rules of all files, with the problems in them: the site's, a Hub service's and the user's."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from .calls import JsonObject
from .policy import Effect, Layer, Rule
from .site_policy import SitePolicy
from .times import json_time
from .tools import ConfigurationProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRules:
    """The user's rules file.

    Parameters
    ----------
    path : str
        The file, which may not exist.
    entries : tuple of dict
        The rules as written in the file.
    revision : str
        Identifies the file's content; empty if there is no file.
    schema : str or None
        The value of ``$schema``.
    """

    path: str
    entries: tuple[JsonObject, ...] = ()
    revision: str = ""
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPolicyStatus:
    """The status of a Hub service's policy.

    Parameters
    ----------
    hub, url : str
        The Hub's name, and the policy's URL.
    version : int or None
        The version in force; ``None`` if there is none, and then everything is denied.
    issued_at, expires_at : datetime or None
        When it was signed and when it expires.
    problem : str
        Why there is no newer version; empty if the service confirmed that this one is current.
    """

    hub: str
    url: str
    version: int | None = None
    issued_at: datetime | None = None
    expires_at: datetime | None = None
    problem: str = ""

    def to_json(self) -> JsonObject:
        """Return the status as the REST API sends it."""
        return {
            "hub": self.hub,
            "url": self.url,
            "version": self.version,
            "issued_at": json_time(self.issued_at),
            "expires_at": json_time(self.expires_at),
            "problem": self.problem or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBook:
    """The rules of all files.

    Parameters
    ----------
    rules : tuple of Rule
        The site's, then the user's; a broken file is replaced by a rule that asks about, or denies, everything.
    problems : tuple of ConfigurationProblem
        The problems in the files.
    user : UserRules or None
        The user's file; ``None`` if there is none to write.
    site : SitePolicy
        The rest of the site's files; for a broken one, everything is locked.
    hub_policy : HubPolicyStatus or None
        Status of a Hub service's policy, whose rules are among the site's; ``None`` if there is none.
    version : str or None
        In the Hub service itself: the version of its policy, the beginning of its file's SHA-256.
    """

    rules: tuple[Rule, ...] = ()
    problems: tuple[ConfigurationProblem, ...] = ()
    user: UserRules | None = None
    site: SitePolicy = field(default_factory=SitePolicy)
    hub_policy: HubPolicyStatus | None = None
    version: str | None = None

    @property
    def policy_version(self) -> int | str | None:
        """The version of the Hub service's policy that holds; ``None`` if there is none."""
        return self.version if self.hub_policy is None else self.hub_policy.version

    def written_since(self, before: RuleBook) -> tuple[Rule, ...]:
        """Return the rules in the user's file that an earlier book does not have, on any line."""
        known = {_content(rule) for rule in before._of_user()}
        return tuple(rule for rule in self._of_user() if _content(rule) not in known)

    def _of_user(self) -> tuple[Rule, ...]:
        path = None if self.user is None else self.user.path
        return tuple(rule for rule in self.rules if rule.layer is Layer.USER and rule.file == path)


def _content(rule: Rule) -> str:
    """Return a key for comparing rules regardless of their place; equal numbers of different types are distinct."""
    return repr(rule.to_json())


def refusal(problem: ConfigurationProblem, layer: Layer) -> Rule:
    """Return the rule that replaces a broken file: it denies everything for the site, and asks for the user."""
    denies = layer is Layer.SITE
    what = "everything is denied" if denies else "every call asks"
    return Rule(
        server="*",
        tool="*",
        effect=Effect.DENY if denies else Effect.ASK,
        layer=layer,
        reason=f"the rules in `{problem.path}` cannot be used, and until then {what}: {problem.message}",
        file=problem.path,
        line=problem.line or 0,
    )
