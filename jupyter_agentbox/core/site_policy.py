"""What a site lets its users do besides what its rules say of calls: features, and servers of users' own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Final
from urllib.parse import unquote, urlsplit

from jupyter_agentbox.exceptions import LockedError

from .calls import JsonObject
from .globs import careful_matcher_of, is_literal, matcher_of
from .hosts import canonical_host
from .policy import Layer

#: Stands at the end of a command's pattern for any further arguments.
MORE: Final = "..."
#: Variables that decide which program a command starts, what is loaded into it, or from where.
_STEERING: Final = (
    *("PATH", "PATHEXT", "COMSPEC", "SHELL", "SHELLOPTS", "ENV", "BASH_*", "HOME", "USERPROFILE", "APPDATA", "XDG_*"),
    *("LD_*", "DYLD_*", "GCONV_PATH", "LOCPATH", "GLIBC_TUNABLES", "OPENSSL_*"),
    *("PYTHON*", "PIP_*", "PIPX_*", "UV_*", "VIRTUAL_ENV", "CONDA_*"),
    *("NODE_*", "NPM_*", "YARN_*", "PNPM_*", "COREPACK_*", "BUN_*", "DENO_*"),
    *("PERL5*", "RUBY*", "GEM_*", "BUNDLE_*", "LUA_*", "PHPRC", "PHP_INI_*", "DOTNET_*", "DOCKER_*"),
    *(
        "GIT_SSH*",
        "GIT_CONFIG*",
        "GIT_EXEC_PATH",
        "GIT_*ASKPASS",
        "GIT_*DIFF",
        "GIT_*EDITOR",
        "GIT_PAGER",
        "GIT_PROXY_COMMAND",
    ),
    *("CLASSPATH", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"),
    *("*_PROXY", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
#: What the name of a package has that is fetched from elsewhere: `x@npm:y`, `x@user/repository`, `x @ git+https://…`.
_ELSEWHERE: Final = re.compile(r"://|@.*[/:+\s]")
#: Characters of a host that no two programs read in different ways.
_PLAIN_HOST: Final = re.compile(r"[a-z0-9.:_-]+")


class Feature(str, Enum):
    """What an administrator can lock."""

    GRANTS = "grants"
    """Lasting answers that allow."""

    EDIT = "edit"
    """Allowing a call with other arguments than it asked for."""

    LOCAL_SERVERS = "local_servers"
    """MCP servers of users' own."""

    AGENTS = "agents"
    """Agents of notebooks."""

    MODELS = "models"
    """The choice of an agent's model."""


class Lock(str, Enum):
    """Who says whether a feature can be used. Of several files, the last of these that one says holds."""

    USER_CHOICE = "user-choice"
    FORCE_ON = "force-on"
    FORCE_OFF = "force-off"


_IN_WORDS: Final[Mapping[Feature, str]] = {
    Feature.GRANTS: "lasting answers that allow are off",
    Feature.EDIT: "arguments cannot be edited",
    Feature.LOCAL_SERVERS: "MCP servers of your own are off",
    Feature.AGENTS: "agents are off",
    Feature.MODELS: "the model of agents cannot be chosen",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPattern:
    """Which MCP servers are meant: by what they start, or where they are; never by the name that a user gives them.

    Parameters
    ----------
    command : tuple of str
        Patterns of the program and of each argument; `MORE` at the end stands for any others.
    url : str
        A URL, with wildcards in its host and its path.
    """

    command: tuple[str, ...] = ()
    url: str = ""

    def matches_command(self, command: Sequence[str], *, careful: bool) -> bool:
        """Whether a server is meant that starts this; a careful one takes no wildcard for a step up in a path."""
        patterns = self.command
        if not patterns:
            return False
        if patterns[-1] == MORE:
            patterns, command = patterns[:-1], command[: len(patterns) - 1]
        return len(patterns) == len(command) and all(
            _matches(pattern, part, careful=careful) for pattern, part in zip(patterns, command, strict=True)
        )

    def matches_url(self, url: str, *, careful: bool) -> bool:
        """Whether a server is meant that is there."""
        if not self.url:
            return False
        wanted, given = urlsplit(self.url), urlsplit(url)
        if careful and (given.username is not None or given.scheme != wanted.scheme or _port(url) != _port(self.url)):
            return False
        host = canonical_host(given.hostname or "")
        if careful and not _PLAIN_HOST.fullmatch(host):
            return False
        if not fnmatchcase(host, canonical_host(wanted.hostname or "")):
            return False
        pattern, path = wanted.path or "*", given.path or "/"
        if careful:
            return careful_matcher_of(pattern)(path)
        # a server reads a path as it likes; what is denied is denied in every way to write it
        decoded = unquote(path)
        plain = "/" + normpath(decoded).lstrip("/")
        if decoded.endswith(("/", "/.", "/..")) and plain != "/":
            plain += "/"
        return any(map(matcher_of(pattern), (path, plain)))

    def to_json(self) -> JsonObject:
        """Return the pattern as it stands in a file."""
        return {"command": list(self.command)} if self.command else {"url": self.url}


def _matches(pattern: str, part: str, *, careful: bool) -> bool:
    if not careful:
        return matcher_of(pattern)(part)
    if not careful_matcher_of(pattern)(part):
        return False
    if pattern == "*" or pattern.startswith("/") or is_literal(pattern):
        return True
    # a wildcard stands for the name of a package, and its version, but not for where it comes from
    start = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    value = start.partition("=")[2]
    if pattern.startswith("-") and (not value or value.startswith("/") or "://" in value):
        return True  # the value of an option that begins as none does
    return _ELSEWHERE.search(part[len(start) :]) is None


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    try:
        return parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAudit:
    """Where a site wants records of whatever happens, whatever users' settings say.

    Parameters
    ----------
    sinks : tuple of str
        The addresses of places for records.
    when_down : str
        What becomes of calls while one does not take them; empty for what the settings say.
    arguments : str
        What records say of arguments; empty for what the settings say.
    token_file : str
        The file that has the bearer token for addresses of HTTP; empty for what the settings say.
    """

    sinks: tuple[str, ...] = ()
    when_down: str = ""
    arguments: str = ""
    token_file: str = ""

    def then(self, other: SiteAudit) -> SiteAudit:
        """Return what two files say: all places, and of the rest what the first of them says."""
        return SiteAudit(
            sinks=tuple(dict.fromkeys((*self.sinks, *other.sinks))),
            when_down=self.when_down or other.when_down,
            arguments=self.arguments or other.arguments,
            token_file=self.token_file or other.token_file,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPolicySource:
    """Which Hub service has a policy for the users of this machine, and how to know it by.

    Parameters
    ----------
    url : str
        Where the policy is fetched.
    public_key : str
        The key that it is signed with: 32 bytes of Ed25519, in base64.
    hub : str
        The name of the Hub that the policy has to be for.
    """

    url: str
    public_key: str
    hub: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePolicy:
    """What a site lets its users do.

    Parameters
    ----------
    features : mapping
        What is said of features; of the others, the user chooses.
    allowed : tuple of ServerPattern, or None
        The only servers that users may have; ``None`` for any.
    denied : tuple of ServerPattern
        Servers that they may not have, also if they are allowed.
    audit : SiteAudit
        Where records of whatever happens go.
    files : tuple of str
        The files that say so.
    is_closed : bool
        Whether one of them is not understood, so that what it says of the rest is unknown.
    hub_policy : HubPolicySource or None
        The Hub service whose policy holds as well; of several files, the first that names one counts.
    named_by : mapping
        Which of the files turn each feature off; of a feature that is not in it, all of them.
    """

    features: Mapping[Feature, Lock] = field(default_factory=dict)
    allowed: tuple[ServerPattern, ...] | None = None
    denied: tuple[ServerPattern, ...] = ()
    audit: SiteAudit = field(default_factory=SiteAudit)
    files: tuple[str, ...] = ()
    is_closed: bool = False
    hub_policy: HubPolicySource | None = None
    named_by: Mapping[Feature, tuple[str, ...]] = field(default_factory=dict, compare=False)

    @classmethod
    def closed(cls, file: str) -> SitePolicy:
        """Return the policy of a file that is not understood: all is off."""
        return cls(features=dict.fromkeys(Feature, Lock.FORCE_OFF), files=(file,), is_closed=True)

    def lock(self, feature: Feature) -> Lock:
        """Return who says whether a feature can be used."""
        return self.features.get(feature, Lock.USER_CHOICE)

    def is_off(self, feature: Feature) -> bool:
        """Whether nobody can use a feature."""
        return self.lock(feature) is Lock.FORCE_OFF

    def off_by(self, feature: Feature) -> tuple[str, ...]:
        """Return the files that turn a feature off; none if it is on."""
        return self.named_by.get(feature, self.files) if self.is_off(feature) else ()

    def check(self, feature: Feature) -> None:
        """Refuse a feature that is off.

        Raises
        ------
        LockedError
        """
        if self.is_off(feature):
            raise LockedError(self._why_off(feature))

    def why_no_command(self, command: Sequence[str], variables: Sequence[str]) -> str:
        """Return why users may not have a server that starts this with these variables; empty if they may."""
        if why := self._why_off(Feature.LOCAL_SERVERS):
            return why
        if any(pattern.matches_command(command, careful=False) for pattern in self.denied):
            return self._forbidden("what it starts")
        if self.allowed is None:
            return ""
        if not any(pattern.matches_command(command, careful=True) for pattern in self.allowed):
            return self._forbidden("what it starts")
        steering = [name for name in variables if any(fnmatchcase(name.upper(), one) for one in _STEERING)]
        return self._forbidden(f"its variable `{steering[0]}`") if steering else ""

    def why_no_url(self, url: str) -> str:
        """Return why users may not have a server that is there; empty if they may."""
        if why := self._why_off(Feature.LOCAL_SERVERS):
            return why
        if any(pattern.matches_url(url, careful=False) for pattern in self.denied):
            return self._forbidden("its address")
        if self.allowed is None or any(pattern.matches_url(url, careful=True) for pattern in self.allowed):
            return ""
        return self._forbidden("its address")

    def with_stricter(self, other: SitePolicy) -> SitePolicy:
        """Return what both let users do."""
        order = list(Lock)
        features = {
            feature: max(self.lock(feature), other.lock(feature), key=order.index)
            for feature in Feature
            if feature in self.features or feature in other.features
        }
        allowed = self.allowed if other.allowed is None else other.allowed
        if self.allowed is not None and other.allowed is not None:
            allowed = tuple(pattern for pattern in self.allowed if pattern in other.allowed)
        files = (*self.files, *other.files)
        return SitePolicy(
            features=features,
            allowed=allowed,
            denied=(*self.denied, *other.denied),
            audit=self.audit.then(other.audit),
            files=files,
            is_closed=self.is_closed or other.is_closed,
            hub_policy=self.hub_policy or other.hub_policy,
            named_by={feature: (*self.off_by(feature), *other.off_by(feature)) for feature in Feature},
        )

    def to_json(self) -> JsonObject:
        """Return the policy as the REST API sends it: each feature, and why, and by whom, what is off is off."""
        return {
            feature.value: {
                "lock": self.lock(feature).value,
                "message": f"{_IN_WORDS[feature]}: set by your administrator" if self.is_off(feature) else None,
                "layer": Layer.SITE.value if self.is_off(feature) else None,
                "files": [*self.off_by(feature)],
            }
            for feature in Feature
        }

    def servers_to_json(self) -> JsonObject:
        """Return which servers users may have, as a file says it; `allow` is null for any."""
        return {
            "allow": None if self.allowed is None else [pattern.to_json() for pattern in self.allowed],
            "deny": [pattern.to_json() for pattern in self.denied],
        }

    def _why_off(self, feature: Feature) -> str:
        if self.is_off(feature):
            return f"{_IN_WORDS[feature]}: set by your administrator ({', '.join(self.off_by(feature))})"
        return ""

    def _forbidden(self, what: str) -> str:
        return f"your administrator does not allow {what} ({', '.join(self.files)})"
