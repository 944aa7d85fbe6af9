"""The Hub service's policy file: rules, central MCP servers, the files of their secrets, and auditors."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.globs import matcher_of
from jupyter_agentbox.core.local_calls import LOCAL_CALLS
from jupyter_agentbox.core.located_json import Lines, LocatedJsonError, Node, items, member, parse
from jupyter_agentbox.core.policy import Layer, Policy, Rule
from jupyter_agentbox.core.rule_checks import CENTRAL_NAME, HUB_RULE_KEYS, MAX_PATTERN, RuleChecker
from jupyter_agentbox.core.rule_text import MAX_BYTES, rule_from_json
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.core.tools import ConfigurationProblem
from jupyter_agentbox.mcp_client.configuration import (
    Configuration,
    HttpServer,
    StartableServer,
    UnusableServer,
    parse_configuration,
)
from jupyter_agentbox.mcp_client.provider_addresses import is_safe_address

#: The variables for the calling user's name and groups in the entries of central servers.
USER_VARIABLE: Final = "HUB_USER"
GROUPS_VARIABLE: Final = "HUB_GROUPS"

#: Seconds that a user's server leaves a central tool that may run for less, or whose entry does not say how long.
_SHORTEST_TIMEOUT: Final = 300.0

log = logging.getLogger(__name__)

_FILE_KEYS: Final = ("rules", "mcpServers", "secrets", "auditors", "local", "$schema")
_LOCAL_KEYS: Final = ("hub", "valid", "rules", "features", "servers", "central_servers")
#: The keys of `local` that are sent to users' servers.
_SENT_KEYS: Final = ("rules", "features", "servers")
#: For how many seconds a policy is valid on users' servers: at least a minute, at most 30 days, by default a day.
MIN_VALID: Final = 60
MAX_VALID: Final = 30 * 86_400
DEFAULT_VALID: Final = 86_400.0
_RULE_KEYS: Final = ("effect", "server", "tool", "arguments", "groups", "approvers", "timeout", "reason")
_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_USER: Final = re.compile(rf"\$\{{(?:env:)?(?:{USER_VARIABLE}|{GROUPS_VARIABLE})[:}}]")
_WHAT: Final = "a policy"
#: The keys of an entry for a sign-in with OAuth; the second is Cursor's.
_SIGN_IN_KEYS: Final = ("oauth", "auth")
_CLIENT_KEYS: Final = ("clientId", "clientSecret", "scopes", "CLIENT_ID", "CLIENT_SECRET")
#: How to set a variable of an entry.
_TO_SET: Final = "add it to `secrets` or to the service's environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPolicy:
    """The part of a policy file for users' own tools.

    Parameters
    ----------
    hub : str
        The Hub's name, as configured on users' servers.
    valid : float
        Seconds for which users' servers apply it without contact with the service.
    policy : JSON object
        ``rules``, ``features`` and ``servers``, as in a site's rules file.
    rules : tuple of Rule
        The rules among these, by which the service finds whom to ask about a call.
    has_central_servers : bool
        Whether users' servers get the names of the central servers, too.
    """

    hub: str
    valid: float
    policy: JsonObject
    rules: tuple[Rule, ...] = field(default=(), compare=False)
    has_central_servers: bool = False

    def to_json(self) -> JsonObject:
        """Return it in the format of the file."""
        return {"hub": self.hub, "valid": self.valid, **self.policy}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """The contents of a policy file.

    Parameters
    ----------
    path : Path
        The file.
    policy : Policy
        Its rules.
    text : str
        The whole file. The entries of servers are read from it with each user's variables.
    secrets : mapping
        The names of variables, and the contents of their files.
    own_servers : frozenset of str
        The servers that run once for each user: those whose entry contains the user's name or groups, and those to
        which each user signs in.
    servers : tuple of str
        The names of all central servers, in the order of the file.
    sign_in_servers : frozenset of str
        Those of them to which each user signs in (OAuth).
    auditors : frozenset of str
        The groups whose members may read all records.
    local : LocalPolicy or None
        The part that is sent to users' servers.
    files : tuple of Path
        The policy file and the files of secrets.
    """

    path: Path
    policy: Policy = field(default_factory=Policy)
    text: str = field(default='{"mcpServers": {}}', repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    own_servers: frozenset[str] = frozenset()
    servers: tuple[str, ...] = ()
    sign_in_servers: frozenset[str] = frozenset()
    auditors: frozenset[str] = frozenset()
    local: LocalPolicy | None = None
    files: tuple[Path, ...] = ()

    def policy_to_sign(self, environment: Mapping[str, str], *, waits: float) -> LocalPolicy | None:
        """Return the part for users' servers, with the names of the central servers if they are to be sent.

        Parameters
        ----------
        environment : mapping
            The service's environment.
        waits : float
            Seconds for which a request waits whose rule does not say it.
        """
        local = self.local
        if local is None or not local.has_central_servers:
            return local
        known = {**self.servers_for(environment, user="user").servers, **self.servers_for(environment).servers}
        central: JsonObject = {
            name: self._longest_call(name, server.timeout or 0.0, waits)
            for name, server in sorted(known.items())
            if not isinstance(server, UnusableServer)
        }
        return replace(local, policy={**local.policy, "central_servers": central})

    def _longest_call(self, server: str, runs: float, waits: float) -> float:
        """Return for how many seconds a user's server waits for a call: for its approvers, then for the tool."""
        timeouts = [rule.timeout or 0.0 for rule in self.policy.rules if matcher_of(rule.server)(server)]
        return max(waits, *timeouts, 0.0) + max(runs, _SHORTEST_TIMEOUT)

    def servers_for(
        self, environment: Mapping[str, str], *, user: str = "", groups: Iterable[str] = ()
    ) -> Configuration:
        """Return the servers that all users share or, if a user is given, that user's own.

        Parameters
        ----------
        environment : mapping
            The service's environment.
        user : str
            The name of a user of the Hub; empty for the shared servers.
        groups : iterable of str
            The user's groups.
        """
        values = {**environment, **self.secrets}
        if user:
            named = sorted(group for group in groups if "," not in group)  # one with a comma would be two others
            values |= {USER_VARIABLE: user, GROUPS_VARIABLE: ",".join(named)}
        of_others = frozenset((USER_VARIABLE, GROUPS_VARIABLE))
        read = parse_configuration(self.path, self.text, values, of_others=of_others, to_set=_TO_SET)
        wanted = {name: one for name, one in read.servers.items() if (name in self.own_servers) == bool(user)}
        return Configuration(servers=wanted)


class PolicyFileError(ValueError):
    """A policy file cannot be used.

    Attributes
    ----------
    problems : tuple of ConfigurationProblem
        What is wrong, with line and column.
    """

    def __init__(self, problems: Iterable[ConfigurationProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def read_policy_file(path: Path, environment: Mapping[str, str]) -> PolicyFile:
    """Read a policy file.

    Parameters
    ----------
    path : Path
        The file, in JSON.
    environment : mapping
        The service's environment, for the variables in entries of servers.

    Raises
    ------
    PolicyFileError
        If it contains anything unknown, a variable has no value, or a file of a secret cannot be read.
    """
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise PolicyFileError([ConfigurationProblem(path=str(path), message=f"has more than {MAX_BYTES} bytes")])
        text = data.decode("utf-8-sig")
        if why := _why_unsafe(path.stat()):
            raise PolicyFileError([ConfigurationProblem(path=str(path), message=why)])
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise PolicyFileError([ConfigurationProblem(path=str(path), message=message)]) from None
    except UnicodeDecodeError:
        raise PolicyFileError([ConfigurationProblem(path=str(path), message="it is not UTF-8 text")]) from None
    return _Reader(path, text, environment).read()


def _why_unsafe(found: os.stat_result) -> str:
    """Return why others can change a file; empty if they cannot. Its group is the administrator's affair."""
    if found.st_mode & stat.S_IWOTH:
        return "every user of this machine can change it: run `chmod o-w` on it"
    if found.st_uid not in (0, os.geteuid()):
        return f"it belongs to another user (number {found.st_uid}), who can change it: run `chown` on it"
    return ""


class _Reader:
    """Reads the text of a policy file.

    Parameters
    ----------
    path : Path
        The file.
    text : str
        Its contents.
    environment : mapping
        The service's environment.
    """

    def __init__(self, path: Path, text: str, environment: Mapping[str, str]) -> None:
        self._path = path
        self._text = text
        self._environment = environment
        self._lines = Lines(text)
        self._checker = RuleChecker(_RULE_KEYS)

    def read(self) -> PolicyFile:
        try:
            node = parse(self._text)
        except LocatedJsonError as error:
            raise PolicyFileError([self._problem(error.at, str(error))]) from None
        self._check(node)
        self._stop_at_problems()
        secrets = self._secrets(node)
        self._stop_at_problems()
        sign_in_servers = frozenset(name for name, _, entry in _entries(node) if _has_sign_in(entry))
        found = PolicyFile(
            path=self._path,
            policy=Policy(self._rules(node)),
            text=self._text,
            secrets=secrets,
            own_servers=sign_in_servers.union(self._own_servers(node)),
            servers=tuple(_keys(node, "mcpServers")),
            sign_in_servers=sign_in_servers,
            auditors=frozenset(str(group.content) for group in items(node, "auditors")),
            local=self._local_policy(member(node, "local")),
            files=(self._path, *self._secret_files(node)),
        )
        self._check_entries(node, found)
        self._stop_at_problems()
        return found

    def _check(self, node: Node) -> None:
        check = self._checker
        if not isinstance(node.content, dict):
            check.say(node, f'{_WHAT} is an object with a list under "rules"')
            return
        check.check_keys(node, _FILE_KEYS, _WHAT)
        schema = member(node, "$schema")
        if schema is not None and not isinstance(schema.content, str):
            check.say(schema, "`$schema` must be a string")
        self._check_rules(node)
        self._check_auditors(node)
        self._check_sign_ins(node)
        self._check_local(member(node, "local"))
        for name, kind in (("mcpServers", "an object of servers"), ("secrets", "an object: a variable and its file")):
            given = member(node, name)
            if given is not None and not isinstance(given.content, dict):
                check.say(given, f"`{name}` must be {kind}")
        for name, at in _keys(node, "mcpServers").items():
            if not CENTRAL_NAME.fullmatch(name):
                check.found.append(
                    (at, f"`{name:.80}` cannot be the name of a server: use letters, digits, `-` and `_`")
                )
            elif name == LOCAL_CALLS:
                check.found.append((at, f"`{name}` cannot be the name of a server: the service has this endpoint"))

    def _check_rules(self, node: Node) -> None:
        rules = member(node, "rules")
        if rules is None:
            self._checker.say(node, "`rules` is missing")
        elif not isinstance(rules.content, list):
            self._checker.say(rules, "`rules` must be a list")
        else:
            for one in rules.content:
                self._checker.check_rule(one)

    def _check_auditors(self, node: Node) -> None:
        auditors = member(node, "auditors")
        if auditors is None:
            return
        if not isinstance(auditors.content, list):
            self._checker.say(auditors, "`auditors` must be a list of groups")
            return
        for one in auditors.content:
            if not isinstance(one.content, str) or not 0 < len(one.content) <= MAX_PATTERN:
                self._checker.say(one, "the name of a group must be a non-empty string")

    def _check_sign_ins(self, node: Node) -> None:
        for _, _, entry in _entries(node):
            for key in _SIGN_IN_KEYS:
                if (client := member(entry, key)) is not None:
                    self._checker.check_keys(client, _CLIENT_KEYS, f"`{key}`")

    def _check_local(self, given: Node | None) -> None:
        check = self._checker
        if given is None:
            return
        if not isinstance(given.content, dict):
            check.say(given, "`local` must be an object with `hub`, `rules`, `features` and `servers`")
            return
        check.check_keys(given, _LOCAL_KEYS, "`local`")
        check.check_text(given, "hub", MAX_PATTERN, missing="`hub` is missing: the name of this Hub")
        valid = member(given, "valid")
        seconds = DEFAULT_VALID if valid is None else valid.content
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not MIN_VALID <= seconds <= MAX_VALID:
            check.say(valid or given, f"`valid` must be a number of seconds from {MIN_VALID} to {MAX_VALID}")
        central = member(given, "central_servers")
        if central is not None and not isinstance(central.content, bool):
            check.say(central, "`central_servers` must be true or false")
        for_users = RuleChecker(HUB_RULE_KEYS)
        for_users.check_for_users(given)
        check.found += for_users.found

    def _rules(self, node: Node) -> tuple[Rule, ...]:
        return tuple(
            rule_from_json(one.value, Layer.SITE, str(self._path), self._lines.place(one.at)[0])
            for one in items(node, "rules")
            if isinstance(one.value, dict)
        )

    def _local_policy(self, node: Node | None) -> LocalPolicy | None:
        """Return the part for users' servers, which has been checked."""
        if node is None or not isinstance(node.value, dict):
            return None
        given = node.value
        valid = given.get("valid")
        return LocalPolicy(
            hub=str(given["hub"]),
            valid=float(valid) if isinstance(valid, int | float) else DEFAULT_VALID,
            policy={key: given[key] for key in _SENT_KEYS if key in given},
            rules=self._rules(node),
            has_central_servers=given.get("central_servers") is True,
        )

    def _secrets(self, node: Node) -> Mapping[str, str]:
        found: dict[str, str] = {}
        secrets = member(node, "secrets")
        for name, at in _keys(node, "secrets").items():
            given = member(secrets, name) if secrets is not None else None
            if not _VARIABLE_NAME.fullmatch(name) or name in (USER_VARIABLE, GROUPS_VARIABLE):
                self._checker.found.append((at, f"`{name:.80}` cannot be the name of a secret"))
            elif given is None or not isinstance(given.content, str):
                self._checker.found.append((at, f"`{name:.80}` must have the path of the secret's file as its value"))
            else:
                found[name] = self._secret(given.content, given)
        return found

    def _secret_files(self, node: Node) -> Iterable[Path]:
        secrets = member(node, "secrets")
        for name in _keys(node, "secrets"):
            given = member(secrets, name) if secrets is not None else None
            if given is not None:
                yield self._path.parent / str(given.content)

    def _secret(self, file: str, node: Node) -> str:
        if "\0" in file:
            self._checker.say(node, "the file of the secret cannot be read: its name has a null character")
            return ""
        path = self._path.parent / file
        try:
            found = path.stat()
            if why := _why_unsafe(found):
                self._checker.say(node, f"the file of the secret cannot be used: {why}")
            elif found.st_mode & stat.S_IROTH:
                log.warning("every user of this machine can read the secret in `%s`: run `chmod o-r` on it", path)
            return path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            self._checker.say(node, f"the file of the secret cannot be read: {reason}")
            return ""

    def _own_servers(self, node: Node) -> Iterable[str]:
        for name, _, entry in _entries(node):
            if any(_OF_USER.search(text) for text in _texts(entry.value)):
                yield name

    def _check_entries(self, node: Node, found: PolicyFile) -> None:
        """Report entries that cannot be used, filled in for a user with an ordinary name."""
        shared = found.servers_for(self._environment)
        own = found.servers_for(self._environment, user="user")
        for name, at, _ in _entries(node):
            read = shared.servers.get(name) or own.servers[name]
            if isinstance(read, UnusableServer):
                why = "" if read.is_disabled else f"the server `{name}` cannot be used: {read.error}"
            else:
                why = _why_no_sign_in(read) if name in found.sign_in_servers else ""
            if why:
                self._checker.found.append((at, why))

    def _stop_at_problems(self) -> None:
        if self._checker.found:
            raise PolicyFileError([self._problem(at, message) for at, message in self._checker.shown()])

    def _problem(self, at: int, message: str) -> ConfigurationProblem:
        line, column = self._lines.place(at)
        return ConfigurationProblem(path=str(self._path), message=one_line(message), line=line, column=column)


def _keys(node: Node, name: str) -> Mapping[str, int]:
    """Return the keys of an object in the file, with their positions."""
    found = member(node, name)
    return {} if found is None else found.keys


def _entries(node: Node) -> Iterable[tuple[str, int, Node]]:
    """Yield the names of the central servers, with their positions and entries."""
    servers = member(node, "mcpServers")
    for name, at in _keys(node, "mcpServers").items():
        entry = member(servers, name) if servers is not None else None
        if entry is not None:
            yield name, at, entry


def _has_sign_in(entry: Node) -> bool:
    """Whether users sign in to a server. As in `mcp.json`, ``true`` asks for it without settings."""
    given = [entry.value.get(key) for key in _SIGN_IN_KEYS] if isinstance(entry.value, dict) else []
    return any(value is not None and value is not False for value in given)


def _why_no_sign_in(server: StartableServer) -> str:
    """Return why nobody can sign in to a server whose entry says that users do; empty if they can."""
    if not isinstance(server, HttpServer):
        return f"the server `{server.name}` has `oauth`, but it is a program: people sign in to servers with a `url`"
    if server.has_authorization:
        return (
            f"the server `{server.name}` has `oauth` and an `Authorization` header: remove the header if each user"
            " signs in, or `oauth` if all users act with the header"
        )
    if server.headers_helper:
        return f"the server `{server.name}` has `oauth` and `headersHelper`: remove one of them"
    if not is_safe_address(server.url):
        return f"nobody can sign in to the server `{server.name}`: its `url` must begin with https"
    if server.oauth.client_secret is not None and server.oauth.client_id is None:
        return f"the server `{server.name}` has a `clientSecret` without a `clientId`"
    return ""


def _texts(value: JsonValue) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
