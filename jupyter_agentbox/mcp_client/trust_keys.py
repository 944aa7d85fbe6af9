"""The trust keys of configured MCP servers."""

from __future__ import annotations

from jupyter_agentbox.core.trust import trust_key

from .configuration import HttpServer, ServerConfiguration, StdioServer


def trust_key_of(configuration: ServerConfiguration) -> str:
    """Return a configured server's trust key; empty if it cannot be started."""
    if isinstance(configuration, StdioServer):
        return trust_key(
            transport=configuration.transport,
            command=configuration.command,
            args=configuration.args,
            cwd=configuration.cwd,
            env_names=configuration.env,
        )
    if isinstance(configuration, HttpServer):
        return trust_key(
            transport=configuration.transport,
            url=configuration.url,
            header_names=configuration.headers,
            headers_helper=configuration.headers_helper,
        )
    return ""
