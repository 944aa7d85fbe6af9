"""The rules of all files together, with what is wrong in them: the site's, a Hub service's and the user's."""

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
    """The user's file of rules.

    Parameters
    ----------
    path : str
        The file, which may be missing.
    entries : tuple of dict
        Its rules, as they stand there.
    revision : str
        Names what is in the file; empty if there is none.
    schema : str or None
        What ``$schema`` says.
    """

    path: str
    entries: tuple[JsonObject, ...] = ()
    revision: str = ""
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPolicyStatus:
    """How it stands with the policy of a Hub service.

    Parameters
    ----------
    hub, url : str
        The Hub's name, and where its policy is fetched.
    version : int or None
        The version that holds; ``None`` if none does, and then everything is denied.
    issued_at, expires_at : datetime or None
        When it was signed, and until when it holds.
    problem : str
        Why no newer one came; empty if the service said that it is the present one.
    """

    hub: str
    url: str
    version: int | None = None
    issued_at: datetime | None = None
    expires_at: datetime | None = None
    problem: str = ""

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
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
        The site's, then the user's; for each broken file one that asks about, or denies, everything.
    problems : tuple of ConfigurationProblem
        What is wrong in the files.
    user : UserRules or None
        The user's file; ``None`` where there is none to write.
    site : SitePolicy
        What the site's files say besides rules; of a broken one, that all is off.
    hub_policy : HubPolicyStatus or None
        How it stands with the policy of a Hub service, whose rules are among the site's; ``None`` if there is none.
    """

    rules: tuple[Rule, ...] = ()
    problems: tuple[ConfigurationProblem, ...] = ()
    user: UserRules | None = None
    site: SitePolicy = field(default_factory=SitePolicy)
    hub_policy: HubPolicyStatus | None = None

    def written_since(self, before: RuleBook) -> tuple[Rule, ...]:
        """Return the rules of the user's file that an earlier book does not have, on whatever line."""
        known = {_content(rule) for rule in before._of_user()}
        return tuple(rule for rule in self._of_user() if _content(rule) not in known)

    def _of_user(self) -> tuple[Rule, ...]:
        path = None if self.user is None else self.user.path
        return tuple(rule for rule in self.rules if rule.layer is Layer.USER and rule.file == path)


def _content(rule: Rule) -> str:
    """Return what tells a rule from others, wherever it stands: equal numbers of two kinds are two."""
    return repr(rule.to_json())


def refusal(problem: ConfigurationProblem, layer: Layer) -> Rule:
    """Return the rule that stands for a broken file: of the site it denies everything, of the user it asks."""
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
