"""The part of a site's policy that is not about calls: features, and users' own servers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Final
from urllib.parse import unquote, urlsplit

from jupyter_agentbox.exceptions import LockedError

from .calls import JsonObject
from .globs import careful_matcher_of, is_literal, matcher_of, problem_of_pattern
from .hosts import canonical_host
from .policy import Layer

#: At the end of a command pattern, matches any further arguments.
MORE: Final = "..."
#: Variables that determine which program a command starts, what is loaded into it, or from where.
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
#: Marks a package that is fetched from elsewhere: `x@npm:y`, `x@user/repository`, `x @ git+https://…`.
_ELSEWHERE: Final = re.compile(r"://|@.*[/:+\s]")
#: Characters of a host that all programs interpret alike.
_PLAIN_HOST: Final = re.compile(r"[a-z0-9.:_-]+")


class Feature(str, Enum):
    """A feature that an administrator can lock."""

    GRANTS = "grants"
    """Grants that allow calls."""

    EDIT = "edit"
    """Approving a call with edited arguments."""

    LOCAL_SERVERS = "local_servers"
    """Users' own MCP servers."""

    AGENTS = "agents"
    """Agents of notebooks."""

    MODELS = "models"
    """The choice of an agent's model."""


class Lock(str, Enum):
    """Who controls a feature. Of several files' locks, the last of these applies."""

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
    """A pattern for MCP servers: by command, URL or trust key, never by their user-given name.

    Parameters
    ----------
    command : tuple of str
        Patterns for the program and each argument; a final `MORE` matches any others.
    url : str
        A URL, possibly with wildcards in its host and path.
    trust_key : str
        The trust key of exactly one command or URL.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    trust_key: str = ""

    def matches_command(self, command: Sequence[str], *, careful: bool) -> bool:
        """Whether it matches a command; if `careful`, wildcards do not match a parent reference in a path."""
        patterns = self.command
        if not patterns:
            return False
        if patterns[-1] == MORE:
            patterns, command = patterns[:-1], command[: len(patterns) - 1]
        return len(patterns) == len(command) and all(
            _matches(pattern, part, careful=careful) for pattern, part in zip(patterns, command, strict=True)
        )

    def matches_url(self, url: str, *, careful: bool) -> bool:
        """Whether it matches a URL."""
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
        # servers may interpret a path in any way, so a denied path is denied in every spelling
        decoded = unquote(path)
        plain = "/" + normpath(decoded).lstrip("/")
        if decoded.endswith(("/", "/.", "/..")) and plain != "/":
            plain += "/"
        return any(map(matcher_of(pattern), (path, plain)))

    def to_json(self) -> JsonObject:
        """Return the pattern as in a rules file."""
        if self.trust_key:
            return {"trust_key": self.trust_key}
        return {"command": list(self.command)} if self.command else {"url": self.url}


def problem_of_url(url: str) -> str:
    """Return what is wrong with the URL of a `ServerPattern`; empty if nothing is.

    A pattern that can match no URL would permit what it is meant to forbid.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError as error:
        return f"`url` cannot be understood ({error}); it must look like `https://HOST/*`"
    if parts.scheme not in ("https", "http"):
        return "`url` must begin with `https://` or `http://`"
    if not host:
        return "`url` has no host; it must look like `https://HOST/*`"
    if parts.username is not None:
        return "`url` must not contain a user name"
    if "?" in url or "#" in url:
        return "`url` must end with the path, and its wildcard is `*`: `?` and `#` would end the path"
    if "\\" in url or not url.isprintable() or " " in url:
        return "`url` must not contain a space, a line break or a `\\`"
    labels = unquote(host).split(".")
    if any("*" in label and not label.isascii() for label in labels):
        return "`url` has a wildcard beside a letter that is not ASCII: write that part of the host in Punycode"
    plain = canonical_host(host)
    if not _PLAIN_HOST.fullmatch(plain.replace("*", "")) and plain.strip("*"):
        return "`url` has a character in its host that no host has"
    if "" in plain.split(".") and ":" not in plain:
        return "`url` has a dot in its host with nothing before or after it; `*.example.org` is all hosts of a domain"
    return problem_of_pattern(parts.path)


def _matches(pattern: str, part: str, *, careful: bool) -> bool:
    if not careful:
        return matcher_of(pattern)(part)
    if not careful_matcher_of(pattern)(part):
        return False
    if pattern == "*" or pattern.startswith("/") or is_literal(pattern):
        return True
    # a wildcard matches a package's name and version, but not its source
    start = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    value = start.partition("=")[2]
    if pattern.startswith("-") and (not value or value.startswith("/") or "://" in value):
        return True  # the value of an option that begins like none
    return _ELSEWHERE.search(part[len(start) :]) is None


def _has_key(patterns: Iterable[ServerPattern], trust_key: str) -> bool:
    return bool(trust_key) and any(pattern.trust_key == trust_key for pattern in patterns)


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    try:
        return parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAudit:
    """A site's audit sinks, which take precedence over users' settings.

    Parameters
    ----------
    sinks : tuple of str
        The sinks' addresses.
    when_down : str
        What happens to calls while a sink is down; empty to use the settings.
    arguments : str
        Which arguments records contain; empty to use the settings.
    token_file : str
        File with the bearer token for HTTP sinks; empty to use the settings.
    secret_names : tuple of str, or None
        Patterns of names whose values are omitted from records for these sinks; ``None`` for the default names.
    """

    sinks: tuple[str, ...] = ()
    when_down: str = ""
    arguments: str = ""
    token_file: str = ""
    secret_names: tuple[str, ...] | None = None

    def then(self, other: SiteAudit) -> SiteAudit:
        """Merge two files' settings: all sinks, and otherwise the first file's values."""
        return SiteAudit(
            sinks=tuple(dict.fromkeys((*self.sinks, *other.sinks))),
            when_down=self.when_down or other.when_down,
            arguments=self.arguments or other.arguments,
            token_file=self.token_file or other.token_file,
            secret_names=other.secret_names if self.secret_names is None else self.secret_names,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPolicySource:
    """A Hub service with a policy for this machine's users, and the key that authenticates it.

    Parameters
    ----------
    url : str
        The policy's URL.
    public_key : str
        The signing key: 32 bytes of Ed25519, in base64.
    hub : str
        The name of the Hub for which the policy must be.
    """

    url: str
    public_key: str
    hub: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePolicy:
    """A site's settings for its users.

    Parameters
    ----------
    features : mapping
        Locks by feature; the user controls the others.
    allowed : tuple of ServerPattern, or None
        The only servers that users may have; ``None`` for any.
    denied : tuple of ServerPattern
        Servers that users may not have, even if allowed.
    audit : SiteAudit
        The site's audit sinks.
    files : tuple of str
        The files with these settings.
    is_closed : bool
        Whether one of the files is invalid, so that its other settings are unknown.
    hub_policy : HubPolicySource or None
        The Hub service whose policy also applies; from the first file that names one.
    named_by : mapping
        The files that turn each feature off; for a feature not listed, all of them.
    central_servers : mapping
        The names of the Hub service's MCP servers that its policy gives to users' servers, and for how many seconds a
        call of each may take, with the time that it waits for approvers.
    """

    features: Mapping[Feature, Lock] = field(default_factory=dict)
    allowed: tuple[ServerPattern, ...] | None = None
    denied: tuple[ServerPattern, ...] = ()
    audit: SiteAudit = field(default_factory=SiteAudit)
    files: tuple[str, ...] = ()
    is_closed: bool = False
    hub_policy: HubPolicySource | None = None
    named_by: Mapping[Feature, tuple[str, ...]] = field(default_factory=dict, compare=False)
    central_servers: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def closed(cls, file: str) -> SitePolicy:
        """Return the policy of an invalid file: everything is locked."""
        return cls(features=dict.fromkeys(Feature, Lock.FORCE_OFF), files=(file,), is_closed=True)

    def lock(self, feature: Feature) -> Lock:
        """Return who controls a feature."""
        return self.features.get(feature, Lock.USER_CHOICE)

    def is_off(self, feature: Feature) -> bool:
        """Whether a feature is off for everybody."""
        return self.lock(feature) is Lock.FORCE_OFF

    def off_by(self, feature: Feature) -> tuple[str, ...]:
        """Return the files that turn a feature off; empty if it is on."""
        return self.named_by.get(feature, self.files) if self.is_off(feature) else ()

    def check(self, feature: Feature) -> None:
        """Raise an error if a feature is off.

        Raises
        ------
        LockedError
        """
        if self.is_off(feature):
            raise LockedError(self._why_off(feature))

    def why_no_command(self, command: Sequence[str], variables: Sequence[str], *, trust_key: str = "") -> str:
        """Return why users may not have a server with this command and these variables; empty if they may.

        Parameters
        ----------
        command : sequence of str
            The program and its arguments.
        variables : sequence of str
            The names of the variables that its entry sets. The trust key does not tell their values.
        trust_key : str
            The server's trust key.
        """
        if why := self._why_off(Feature.LOCAL_SERVERS):
            return why
        if _has_key(self.denied, trust_key) or any(one.matches_command(command, careful=False) for one in self.denied):
            return self._forbidden("what it starts", trust_key)
        if self.allowed is None:
            return ""
        matches = (pattern.matches_command(command, careful=True) for pattern in self.allowed)
        if not _has_key(self.allowed, trust_key) and not any(matches):
            return self._forbidden("what it starts", trust_key)
        steering = [name for name in variables if any(fnmatchcase(name.upper(), one) for one in _STEERING)]
        return self._forbidden(f"its variable `{steering[0]}`") if steering else ""

    def why_no_url(self, url: str, *, trust_key: str = "") -> str:
        """Return why users may not have a server at this URL and with this trust key; empty if they may."""
        if why := self._why_off(Feature.LOCAL_SERVERS):
            return why
        if _has_key(self.denied, trust_key) or any(one.matches_url(url, careful=False) for one in self.denied):
            return self._forbidden("its address", trust_key)
        if self.allowed is None or _has_key(self.allowed, trust_key):
            return ""
        if any(pattern.matches_url(url, careful=True) for pattern in self.allowed):
            return ""
        return self._forbidden("its address", trust_key)

    def with_stricter(self, other: SitePolicy) -> SitePolicy:
        """Return a policy that permits only what both do."""
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
            central_servers={**other.central_servers, **self.central_servers},
        )

    def to_json(self) -> JsonObject:
        """Return the policy as the REST API sends it: each feature, with reasons and files if it is off."""
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
        """Return the servers that users may have, as in a file; `allow` is null for any."""
        return {
            "allow": None if self.allowed is None else [pattern.to_json() for pattern in self.allowed],
            "deny": [pattern.to_json() for pattern in self.denied],
        }

    def _why_off(self, feature: Feature) -> str:
        if self.is_off(feature):
            return f"{_IN_WORDS[feature]}: set by your administrator ({', '.join(self.off_by(feature))})"
        return ""

    def _forbidden(self, what: str, trust_key: str = "") -> str:
        named = f"; its trust key is {trust_key}" if trust_key else ""
        return f"your administrator does not allow {what} ({', '.join(self.files)}){named}"
