"""Adds MCP servers that a program requested and a person approved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.site_policy import SitePolicy
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ServerConfigurationError, ToolServerError

from .configuration import SERVER_KEYS, Configuration, UnusableServer, parse_configuration
from .limits import ServerLimits
from .registration import HIDDEN, SECRET_KEYS, check_configuration, check_name, masked, object_of, redactor
from .servers import McpServers
from .site_servers import admitted_server


class ServerRegistry:
    """Adds MCP servers to a file that is used in addition to the user's.

    Parameters
    ----------
    known : callable
        Returns the names of the existing servers.
    keep : callable
        Writes a server's name and configuration to the file. Raises `OSError`.
    limits : ServerLimits
        Resource limits and working directory of a server that is tried out.
    policy : callable
        Returns the site's settings for its users, which may forbid a server.
    """

    def __init__(
        self,
        *,
        known: Callable[[], Collection[str]],
        keep: Callable[[str, Mapping[str, JsonValue]], None],
        limits: ServerLimits,
        policy: Callable[[], SitePolicy] = SitePolicy,
    ) -> None:
        self._policy = policy
        self._known = known
        self._keep = keep
        self._limits = limits

    def check(self, name: str, configuration: Mapping[str, JsonValue]) -> None:
        """Check that a server can be added.

        Raises
        ------
        ServerConfigurationError
            The message contains no secret.
        """
        check_name(name, self._known())
        check_configuration(name, configuration)
        server = admitted_server(_Given(name, configuration).load().servers[name], self._policy())
        if isinstance(server, UnusableServer):
            raise ServerConfigurationError(f"`{name}` was not registered: {server.error}")

    def shown(self, configuration: Mapping[str, JsonValue]) -> JsonObject:
        """Return the configuration as shown to a person and recorded, without secret values."""
        return masked(configuration)

    def restored(self, shown: Mapping[str, JsonValue], given: Mapping[str, JsonValue]) -> JsonObject:
        """Return a shown and possibly edited configuration with its original secrets restored.

        Raises
        ------
        ServerConfigurationError
            If a placeholder is where there was no secret.
        """
        before = masked(given)
        whole: JsonObject = dict(shown)
        for key in SECRET_KEYS:
            if isinstance(values := shown.get(key), dict):
                hidden, original = object_of(before.get(key)), object_of(given.get(key))
                whole[key] = {
                    name: original[name] if name in original and hidden[name] == value else value
                    for name, value in values.items()
                }
        if "url" in given and shown.get("url") == before["url"]:
            whole["url"] = given["url"]
        left = [object_of(whole.get(key)).values() for key in SECRET_KEYS]
        if any(HIDDEN in str(value) for values in left for value in values) or HIDDEN in str(whole.get("url")):
            raise ServerConfigurationError(f"`{HIDDEN}` stands for a hidden value and must stay where it was")
        return whole

    async def try_out(self, name: str, configuration: Mapping[str, JsonValue]) -> Sequence[ToolDescription]:
        """Start the server, list its tools, and stop it.

        Raises
        ------
        ToolServerError
            If that fails. The message contains no secret.
        """
        try:
            return await list_tools_of(name, configuration, self._limits)
        except ToolServerError as error:
            raise ToolServerError(redactor(configuration)(str(error))) from None

    def keep(self, name: str, configuration: Mapping[str, JsonValue]) -> None:
        """Add the server.

        Raises
        ------
        ServerConfigurationError
            If the file cannot be written.
        """
        try:
            self._keep(name, configuration)
        except OSError as error:
            raise ServerConfigurationError(f"`{name}` could not be saved: {error}") from None


class _Given:
    """The configuration of one server, without a file. Implements `ConfigurationSource`."""

    def __init__(self, name: str, parameters: Mapping[str, Any]) -> None:
        text = json.dumps({SERVER_KEYS[0]: {name: parameters}})
        self._configuration = parse_configuration(Path("mcp.json").absolute(), text, os.environ)

    def load(self) -> Configuration:
        return self._configuration


async def list_tools_of(name: str, parameters: Mapping[str, Any], limits: ServerLimits) -> list[ToolDescription]:
    """Start a server given by its parameters, list its tools, and stop it.

    Parameters
    ----------
    name : str
        The server's name.
    parameters : mapping
        An entry as in ``mcp.json``.
    limits : ServerLimits
        Its resource limits and working directory.

    Raises
    ------
    ToolServerError
        If it does not start or list its tools.
    """
    runner = McpServers(source=_Given(name, parameters), limits=limits)
    try:
        return list(await runner.list_tools(name))
    finally:
        await runner.aclose()
