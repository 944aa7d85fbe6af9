"""The site's MCP servers, with those of its Hub service, and restrictions on users' own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.site_policy import SitePolicy
from jupyter_agentbox.core.tools import ConfigurationProblem

from .configuration import (
    Configuration,
    ConfigurationSource,
    HttpServer,
    ServerConfiguration,
    StdioServer,
    UnusableServer,
    parse_configuration,
)
from .configuration_files import ConfigurationFiles
from .registration import without_look_alikes
from .trust_keys import trust_key_of

#: File name of a site's servers, in a system-wide configuration directory.
FILE_NAME: Final = "agentbox_mcp.json"
#: The end of the URL of a Hub service's policy, below which its servers are, too.
_POLICY: Final = "api/policy"


class SiteServers:
    """The site's servers, followed by users' servers that the site permits. A `ConfigurationSource`.

    Parameters
    ----------
    users : ConfigurationSource
        Users' servers. A name used by the site is the site's.
    policy : callable
        Returns the site's settings for its users.
    paths : sequence of Path
        Possible paths of the site's files.
    why_unprotected : callable
        Returns why users can change a file, which is then ignored; empty if they cannot.
    environment : mapping
        The source of variables.
    """

    def __init__(
        self,
        users: ConfigurationSource,
        *,
        policy: Callable[[], SitePolicy],
        paths: Sequence[Path],
        why_unprotected: Callable[[Path], str],
        environment: Mapping[str, str],
    ) -> None:
        self._users = users
        self._policy = policy
        self._files = [(path, ConfigurationFiles([path], environment)) for path in paths]
        self._why_unprotected = why_unprotected
        self._environment = environment
        self._parts: tuple[object, ...] = ()
        self._configuration = Configuration()

    def load(self) -> Configuration:
        """Return the configuration; the same object as last time if nothing changed."""
        users, policy = self._users.load(), self._policy()
        own = [(path, files.load()) for path, files in self._files]
        parts = (users, policy, *(configuration for _, configuration in own))
        if len(parts) != len(self._parts) or any(map(_is_other, parts, self._parts)):
            self._parts = parts
            self._configuration = self._read(users, policy, own)
        return self._configuration

    def _read(
        self, users: Configuration, policy: SitePolicy, own: Sequence[tuple[Path, Configuration]]
    ) -> Configuration:
        servers: dict[str, ServerConfiguration] = {}
        problems: list[ConfigurationProblem] = []
        for path, configuration in own:
            if not configuration.servers and not configuration.problems:
                continue
            if why := self._why_unprotected(path):
                problems.append(ConfigurationProblem(path=str(path), message=f"{why}: its servers do not count"))
                continue
            servers = {**configuration.servers, **servers}
            problems += configuration.problems
        central = central_servers(policy, self._environment)
        servers = {**central.servers, **servers}
        problems += central.problems
        path = own[0][0] if own else Path()
        others, alike = without_look_alikes(users.servers, servers, path)
        admitted = {name: admitted_server(server, policy) for name, server in others.items()}
        return Configuration(servers={**servers, **admitted}, problems=(*problems, *users.problems, *alike))


def central_servers(policy: SitePolicy, environment: Mapping[str, str]) -> Configuration:
    """Return the servers that the policy of a Hub service gives to users' servers.

    The names are signed. Where they are comes from the site's file, so no policy sends this server's token elsewhere.

    Parameters
    ----------
    policy : SitePolicy
        The site's settings, with those of its Hub service.
    environment : mapping
        The source of this server's token.
    """
    source = policy.hub_policy
    if source is None or not policy.central_servers:
        return Configuration()
    if not source.url.endswith(_POLICY):
        message = (
            f"the Hub service has MCP servers for everybody, but where is unknown: `url` in `hub_policy` must end with"
            f" `{_POLICY}`"
        )
        return Configuration(problems=(ConfigurationProblem(path=next(iter(policy.files), ""), message=message),))
    headers = {"Authorization": "Bearer ${JUPYTERHUB_API_TOKEN}"}
    entries = {
        name: {"url": f"{source.url.removesuffix(_POLICY)}mcp/{name}", "headers": headers, "timeout": seconds}
        for name, seconds in policy.central_servers.items()
    }
    text = json.dumps({"mcpServers": entries})
    return parse_configuration(Path(f"the policy of {source.hub}"), text, environment)


def admitted_server(server: ServerConfiguration, policy: SitePolicy) -> ServerConfiguration:
    """Return a user's server, or its replacement if the site does not permit it."""
    why, key = "", trust_key_of(server)
    if isinstance(server, StdioServer):
        why = policy.why_no_command((server.command, *server.args), [*server.env], trust_key=key)
    elif isinstance(server, HttpServer):
        why = policy.why_no_url(server.url, trust_key=key)
        if not why and server.headers_helper:
            why = policy.why_no_command(server.headers_helper, (), trust_key=key)
    return UnusableServer(name=server.name, transport=server.transport, error=why) if why else server


def _is_other(one: object, other: object) -> bool:
    return one is not other
