"""A Hub's spawn profile: environment variables of a server that can only tighten its policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from .isolation import LADDER, Isolation
from .notebook_runners import NO_SERVER
from .policy import Effect, Layer, Rule
from .rule_text import RuleText
from .site_policy import Feature, Lock, SitePolicy
from .tools import ConfigurationProblem

PREFIX: Final = "JUPYTER_AGENTBOX_"
#: The minimum level of isolation; below it, no kernel's calls run.
MIN_ISOLATION: Final = f"{PREFIX}MIN_ISOLATION"
#: Variables for kernels, which do not affect the policy.
_OF_KERNELS: Final = frozenset({NO_SERVER, f"{PREFIX}AGENT_KERNEL"})
_FEATURES: Final[Mapping[str, Feature]] = {f"{PREFIX}{feature.name}": feature for feature in Feature}
_OFF: Final = "off"
_LEVELS: Final = tuple(level.value for level in LADDER if level is not Isolation.NONE)


def profile_of(environment: Mapping[str, str]) -> RuleText | None:
    """Return the settings of a spawn profile; ``None`` if there are none.

    A variable that is unknown or would loosen the policy is a problem: then everything is denied, as with an invalid
    site file.

    Parameters
    ----------
    environment : mapping
        The server's environment.
    """
    given = {name: text for name, text in environment.items() if name.startswith(PREFIX) and name not in _OF_KERNELS}
    if not given:
        return None
    problems = tuple(_problems(given))
    level = given.get(MIN_ISOLATION)
    rules = (_at_least(Isolation(level)),) if level in _LEVELS else ()
    off = {feature: Lock.FORCE_OFF for name, feature in _FEATURES.items() if given.get(name) == _OFF}
    files = tuple(f"${name}" for name, feature in _FEATURES.items() if feature in off)
    named_by = {feature: (f"${name}",) for name, feature in _FEATURES.items() if feature in off}
    return RuleText(rules=rules, problems=problems, site=SitePolicy(features=off, files=files, named_by=named_by))


def _problems(given: Mapping[str, str]) -> Iterator[ConfigurationProblem]:
    for name, text in sorted(given.items()):
        if name == MIN_ISOLATION:
            if text not in _LEVELS:
                yield _problem(name, f"it is `{text:.40}`, and must be one of {', '.join(_LEVELS)}")
        elif name not in _FEATURES:
            known = ", ".join((MIN_ISOLATION, *_FEATURES))
            yield _problem(name, f"there is no such variable; a spawn profile has {known}")
        elif text != _OFF:
            yield _problem(
                name, f"it is `{text:.40}`, and can only be `{_OFF}`: a spawn profile tightens, never loosens"
            )


def _problem(name: str, message: str) -> ConfigurationProblem:
    return ConfigurationProblem(path=f"${name}", message=f"the variable of the spawn profile: {message}")


def _at_least(level: Isolation) -> Rule:
    return Rule(
        server="*",
        tool="*",
        effect=Effect.DENY,
        layer=Layer.SITE,
        below=level,
        reason=f"only kernels in a sandbox of the level {level.value} or a stronger one may call tools here: choose"
        " such a kernel (set by your administrator for this server's profile)",
        file=f"${MIN_ISOLATION}",
    )
