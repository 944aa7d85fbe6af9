"""``jupyter agentbox doctor --hub``: checks that the setup of a Hub's administrator is effective in a user's server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, build_opener

from jupyter_agentbox.core.isolation import LADDER, Isolation
from jupyter_agentbox.core.reviewers import DECIDE_SCOPE, MANAGE_SCOPE
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.spawn_profile import MIN_ISOLATION
from jupyter_agentbox.doctor_checks import Check
from jupyter_agentbox.no_redirects import NoRedirects
from jupyter_agentbox.sandbox.server.site import is_site
from jupyter_agentbox.storage.protection import why_unprotected

#: Seconds to wait for the Hub's answer.
_PATIENCE: Final = 10.0
#: Seconds by which clocks may differ: a policy signed a few minutes in the future is refused.
_MOST_DIFFERENCE: Final = 30.0
#: Scopes that would let a user's code, which can read the token, do more than a server needs.
_BROAD: Final = ("admin", "servers", "tokens", "access:servers", "users", "groups", "proxy", "shutdown", "self", "all")
#: Scopes that a server's token has by default, each limited to this server or user.
_OWN: Final = ("access:servers!server=", "users:activity!user=", "read:")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAnswer:
    """The Hub's answer about the server's token.

    Parameters
    ----------
    scopes : tuple of str
        The token's scopes.
    at : datetime or None
        The time of the Hub's clock.
    problem : str
        Why there is no answer; empty if there is one.
    """

    scopes: tuple[str, ...] = ()
    at: datetime | None = None
    problem: str = ""


def ask_hub(environment: Mapping[str, str]) -> HubAnswer:
    """Ask the Hub about the server's token."""
    url, token = environment.get("JUPYTERHUB_API_URL", ""), environment.get("JUPYTERHUB_API_TOKEN", "")
    if not url.startswith(("http://", "https://")) or not token:
        return HubAnswer(
            problem="JUPYTERHUB_API_URL and JUPYTERHUB_API_TOKEN are not set: this is not a server of a Hub"
        )
    request = Request(f"{url}/user", headers={"Authorization": f"token {token}"})  # noqa: S310  # checked above
    try:
        with build_opener(NoRedirects).open(request, timeout=_PATIENCE) as answer:
            said: Any = json.load(answer)
            date = answer.headers.get("Date")
            at = None if date is None else parsedate_to_datetime(date)
    except HTTPError as error:
        return HubAnswer(problem=f"the Hub refuses this server's token: {error.code}")
    except (URLError, OSError, ValueError) as error:
        return HubAnswer(problem=f"the Hub does not answer: {getattr(error, 'reason', error)}")
    scopes = said.get("scopes") if isinstance(said, dict) else None
    return HubAnswer(scopes=tuple(str(scope) for scope in scopes or ()), at=at)


def token(answer: HubAnswer) -> Check:
    """Check that the server's token, which code in plain kernels can read, has no more scopes than necessary."""
    name = "Hub token"
    if answer.problem:
        return Check(name=name, state="problem", text=answer.problem, advice="restart the server from the Hub")
    decides = [scope for scope in answer.scopes if scope.partition("!")[0] in (DECIDE_SCOPE, MANAGE_SCOPE)]
    broad = [scope for scope in answer.scopes if scope.startswith(_BROAD) and not scope.startswith(_OWN)]
    if decides or broad:
        return Check(
            name=name,
            state="problem",
            text=f"the server's own token has {', '.join([*decides, *broad])}, and code in plain kernels can read it",
            advice="remove these from `c.Spawner.server_token_scopes`, or from the role `server`",
        )
    return Check(name=name, state="ok", text=f"the server's own token has {', '.join(answer.scopes) or 'no scope'}")


def clock(answer: HubAnswer, now: datetime) -> Check:
    """Compare this machine's clock with the Hub's."""
    if answer.at is None:
        return Check(name="clock", state="note", text="cannot be compared: the Hub did not send its time")
    difference = (now - answer.at.astimezone(UTC)).total_seconds()
    if abs(difference) > _MOST_DIFFERENCE:
        where = "ahead of" if difference > 0 else "behind"
        return Check(
            name="clock",
            state="problem",
            text=f"it is {abs(difference):.0f} s {where} the Hub's: times in records are wrong, and a signed policy is"
            " treated as expired or refused",
            advice="synchronize both with NTP",
        )
    return Check(name="clock", state="ok", text=f"within {_MOST_DIFFERENCE:.0f} s of the Hub's")


def configuration(environment: Mapping[str, str], sites: Iterable[Path]) -> Iterator[Check]:
    """Check that users can change neither the configuration that their server loads nor the site's rules."""
    if environment.get("JUPYTERHUB_DISABLE_USER_CONFIG", "") in ("", "0"):
        yield Check(
            name="configuration",
            state="problem",
            text="the user's own configuration files are loaded, and can change any setting of the server",
            advice="set `c.Spawner.disable_user_config = True`",
        )
    else:
        yield Check(name="configuration", state="ok", text="the user's own configuration files are not loaded")
    there = [path for path in sites if path.exists()]
    if not there:
        yield Check(
            name="site's rules",
            state="note",
            text="there are none",
            advice="create `agentbox_rules.json` where only root can write",
        )
    for path in there:
        why = why_unprotected(path)
        advice = "make the file and all directories above it belong to root and writable for nobody else" if why else ""
        text = f"{path}: {why}" if why else f"the user cannot write to {path}"
        yield Check(name="site's rules", state="problem" if why else "ok", text=text, advice=advice)


def kernelspecs(directories: Sequence[Path]) -> Check:
    """Check that no kernelspec in a directory of the user's hides one of the site's.

    Parameters
    ----------
    directories : sequence of Path
        The directories of kernelspecs, in the order in which Jupyter searches them.
    """
    seen: dict[str, Path] = {}
    hidden: list[str] = []
    for directory in directories:
        for spec in sorted(directory.glob("*/kernel.json")):
            name = spec.parent.name.lower()
            if name not in seen:
                seen[name] = directory
            elif is_site(spec.parent) and not is_site(seen[name]):
                hidden.append(f"`{name}` of {directory} by that of {seen[name]}")
    if hidden:
        return Check(
            name="kernelspecs",
            state="problem",
            text=f"hidden: {'; '.join(hidden)}",
            advice="set `c.ServerApp.kernel_spec_manager_class` to the package's `SandboxedKernelSpecManager`",
        )
    return Check(name="kernelspecs", state="ok", text=f"{len(seen)} found; none hides one of the site's")


def level(reached: Sequence[Isolation], environment: Mapping[str, str]) -> Check:
    """Check that a sandbox works on this machine, and reaches the level that the spawn profile requires."""
    name, wanted = "sandbox level", environment.get(MIN_ISOLATION, "")
    best = min(reached, key=LADDER.index, default=None)
    if best is None:
        advice = "see the lines above and, for pods, `docs/how-to/on-kubernetes.md`"
        return Check(
            name=name, state="problem", text="no sandbox works on this machine, so kernels are plain", advice=advice
        )
    if wanted in [one.value for one in LADDER] and not best.at_least(Isolation(wanted)):
        text = f"{best.value} is reached, but `{MIN_ISOLATION}` requires {wanted}, so no kernel can call a tool"
        return Check(name=name, state="problem", text=text, advice="change the profile, or the machine")
    return Check(name=name, state="ok", text=f"{best.value}")


def sinks(book: RuleBook) -> Check:
    """Check that records are sent to an audit sink that users do not control."""
    if not book.site.audit.sinks:
        return Check(
            name="audit sinks",
            state="problem",
            text="the site's rules name no audit sink, so the only record is a file that belongs to the user",
            advice='add `"audit": {"sinks": [...]}` to the site\'s `agentbox_rules.json`',
        )
    return Check(name="audit sinks", state="ok", text=f"{len(book.site.audit.sinks)}, of the site's rules")


def public_url(environment: Mapping[str, str]) -> Check:
    """Check that the server knows its public URL."""
    found = environment.get("JUPYTERHUB_PUBLIC_URL", "")
    if not found:
        return Check(
            name="public URL",
            state="problem",
            text="unknown, so links in texts have only a path",
            advice="set `c.JupyterHub.public_url`",
        )
    return Check(name="public URL", state="ok", text=found)


def policy(book: RuleBook) -> Check:
    """Check that the policy named in the site's rules is signed by the key named there, and in force."""
    name, found = "policy of the Hub service", book.hub_policy
    if found is None:
        return Check(name=name, state="ok", text="none is named in the site's rules")
    if found.version is None:
        return Check(
            name=name,
            state="problem",
            text=f"no policy is in force, so everything is denied: {found.problem or 'none has been received'}",
            advice="compare `public_key` with the output of `jupyter agentbox hub --show-policy-key`, and check that"
            " the service can be reached",
        )
    if found.problem:
        text = f"version {found.version} is in force until {found.expires_at}, but cannot be renewed: {found.problem}"
        return Check(name=name, state="note", text=text, advice="check that the service can be reached")
    return Check(name=name, state="ok", text=f"version {found.version}, signed for {found.hub}")
