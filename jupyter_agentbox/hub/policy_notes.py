"""What a policy file says that can be used, but is probably not what the administrator meant."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from jupyter_agentbox.core.globs import matcher_of
from jupyter_agentbox.core.policy import Rule
from jupyter_agentbox.core.text import did_you_mean, one_line
from jupyter_agentbox.mcp_client.configuration import StdioServer
from jupyter_agentbox.mcp_client.connections import program
from jupyter_agentbox.mcp_client.servers_file import ENTRY_KEYS

from .policy_file import PolicyFile
from .sign_in_addresses import why_no_redirect


def notes_of(policy: PolicyFile, environment: Mapping[str, str], *, timeout: float, public_url: str) -> list[str]:
    """Return a note for each part of a policy file that seems to be a mistake, with the file and, for rules, the line.

    Parameters
    ----------
    policy : PolicyFile
        The file.
    environment : mapping
        The service's environment.
    timeout : float
        How long a request waits if its rule does not say, in seconds.
    public_url : str
        The address of the service that people open.
    """
    rules = policy.policy.rules
    local = () if policy.local is None else policy.local.rules
    found = [
        *(f"{rule.file}:{rule.line}: {note}" for rule in rules for note in _of_server(rule, policy)),
        *(f"{rule.file}:{rule.line}: {note}" for rule in (*rules, *local) for note in _of_escalation(rule, timeout)),
        *(
            f"{rule.file}:{rule.line}: {note}"
            for part in (rules, local)
            for rule in part
            for note in _not_asked(rule, part)
        ),
        *(f"{path}: members of its group can change it: run `chmod g-w` on it" for path in _group_writable(policy)),
        *(f"{policy.path}: {note}" for note in _of_secrets(policy)),
        *(f"{policy.path}: {note}" for note in _of_keys(policy)),
        *(f"{policy.path}: {note}" for note in _of_servers(policy, environment)),
        *(f"{policy.path}: {note}" for note in _of_sign_ins(policy, public_url)),
    ]
    return [one_line(note, 500) for note in found]


def _of_server(rule: Rule, policy: PolicyFile) -> Iterable[str]:
    if rule.server != "*" and not any(map(matcher_of(rule.server), policy.servers)):
        yield f"no central server matches `{rule.server}`{did_you_mean(rule.server, policy.servers)}"


def _of_sign_ins(policy: PolicyFile, public_url: str) -> Iterable[str]:
    if why := why_no_redirect(public_url):
        for name in policy.servers:
            if name in policy.sign_in_servers:
                yield f"nobody can sign in to the server `{name}`, because {why}"


def _of_escalation(rule: Rule, timeout: float) -> Iterable[str]:
    escalation = rule.approvers.escalation if rule.approvers is not None else None
    waits = timeout if rule.timeout is None else rule.timeout
    if escalation is not None and escalation.after >= waits:
        yield (
            f"the group `{escalation.group}` is never asked: it may decide after {escalation.after:g} seconds, but the"
            f" request expires after {waits:g} seconds"
        )


def _not_asked(rule: Rule, rules: Iterable[Rule]) -> Iterable[str]:
    """Note a rule whose group is not asked, because a rule below it in the file asks more persons of another."""
    asked = rule.approvers
    for other in rules:
        more = other.approvers
        if asked is None or more is None or more.count <= asked.count or more.group == asked.group:
            continue
        if (
            (other.line or 0) > (rule.line or 0)
            and _overlap(rule.server, other.server)
            and _overlap(rule.tool, other.tool)
        ):
            yield (
                f"calls that the rule in line {other.line} matches, too, do not ask `{asked.group}`: it asks"
                f" {more.count} persons of `{more.group}`, and is stricter"
            )


def _overlap(pattern: str, other: str) -> bool:
    """Whether one pattern matches the other's text, so that some name matches both. Other overlaps are not found."""
    return matcher_of(pattern)(other) or matcher_of(other)(pattern)


def _group_writable(policy: PolicyFile) -> Iterable[Path]:
    return (path for path in policy.files if path.exists() and path.stat().st_mode & stat.S_IWGRP)


def _of_secrets(policy: PolicyFile) -> Iterable[str]:
    return (f"the file of the secret `{name}` is empty" for name, value in policy.secrets.items() if not value)


def _of_keys(policy: PolicyFile) -> Iterable[str]:
    """Note keys of entries that only other programs know."""
    for name, entry in json.loads(policy.text).get("mcpServers", {}).items():
        for key in entry:
            if key not in ENTRY_KEYS:
                yield f"the key `{key}` of the server `{name}` has no meaning here{did_you_mean(key, ENTRY_KEYS)}"


def _of_servers(policy: PolicyFile, environment: Mapping[str, str]) -> Iterable[str]:
    """Note programs that do not exist, except of servers whose entry depends on the user."""
    for name, server in policy.servers_for(environment).servers.items():
        if not isinstance(server, StdioServer):
            continue
        command, path = program(server), server.env.get("PATH", environment.get("PATH"))
        if "/" in command:
            command, where = str(Path(server.cwd or "", command)), ""
        else:
            where = " in the PATH of its entry" if "PATH" in server.env else f" in this PATH: {path}"
        if shutil.which(command, path=path):
            continue
        if any(secret in command for secret in server.secrets if secret):
            yield f"the server `{name}` cannot start: the program of its `command` does not exist{where}"
        else:
            yield f"the server `{name}` cannot start: there is no program `{command}`{where}"
