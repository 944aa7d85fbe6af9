"""The settings of MCP servers, and the values that are made from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from jupyter_core.paths import jupyter_config_dir
from traitlets import Bool, Enum, Float, HasTraits, Int, Unicode, default

from jupyter_agentbox.mcp_client.limits import ServerLimits, safe_working_directory
from jupyter_agentbox.paths import added_servers_path


class McpTraits(HasTraits):
    """The settings of MCP servers, which an administrator or a user sets as ``c.AgentBoxApp.mcp_…``."""

    mcp_config_path = Unicode(
        help="The path of the file that lists the MCP servers. Default: mcp.json in Jupyter's configuration directory."
    ).tag(config=True)

    read_project_servers = Bool(
        True,
        help="Whether the file .mcp.json in the server's root directory is read as well, if `mcp_config_path` has its "
        "default. No MCP server of it is started before a person has looked at its entry and trusted it.",
    ).tag(config=True)

    review_changed_servers = Bool(
        help="Whether an MCP server whose entry was added to or changed in the user's files by anything but the panel"
        " starts only after a person has reviewed the entry and trusted it. Default: true on a JupyterHub server,"
        " otherwise false."
    ).tag(config=True)

    mcp_start_timeout = Float(60.0, help="How long an MCP server may take to start, in seconds.").tag(config=True)

    mcp_call_timeout = Float(
        600.0,
        help="How long a tool may run, in seconds, unless mcp.json sets its own limit. Waiting"
        " for a decision does not count.",
    ).tag(config=True)

    mcp_log_lines = Int(200, help="How many lines of each MCP server's log are kept: the last ones.").tag(config=True)

    mcp_message_cap = Int(
        256_000_000,
        help="The largest message that an MCP server may send, in bytes. A larger one fails the call "
        "that it answers, and no other.",
    ).tag(config=True)

    mcp_idle_timeout = Float(
        1800.0,
        min=1.0,
        allow_none=True,
        help="After how many seconds an MCP server that is a program is stopped if nobody used it. Its next use starts "
        "it. None: never.",
    ).tag(config=True)

    mcp_most_processes = Int(
        20,
        min=1,
        allow_none=True,
        help="How many MCP servers that are programs run at a time. For one more, the one is stopped that was not used "
        "for longest; if all are in use, the call fails. None: no limit.",
    ).tag(config=True)

    mcp_memory_limit = Int(
        None,
        min=64_000_000,
        allow_none=True,
        help="How many bytes of data each process of an MCP server may have, on Linux (RLIMIT_DATA). None: no limit.",
    ).tag(config=True)

    sign_in_storage = Enum(
        ["auto", "file", "memory"],
        default_value="auto",
        help=(
            "Where the tokens of people's sign-ins to remote MCP servers are kept: `auto`, in the keyring of the"
            " operating system if there is one and else in a file that only this user can read; `file`; or `memory`,"
            " until the server stops."
        ),
    ).tag(config=True)

    @default("mcp_config_path")
    def _default_mcp_config_path(self) -> str:
        return str(Path(jupyter_config_dir()) / "mcp.json")

    def servers_file(self) -> Path:
        """Return the file of servers, whose absolute path is part of the keys to which trust is bound."""
        return Path(self.mcp_config_path).absolute()

    def added_servers(self) -> Path | None:
        """Return the file of servers that programs may add; ``None`` if `mcp_config_path` was set."""
        return added_servers_path() if self.mcp_config_path == self._default_mcp_config_path() else None

    def server_limits(self, could_write: Callable[[Path], bool]) -> ServerLimits:
        """Return the limits of MCP servers, which are started where no sandboxed kernel could write."""
        return ServerLimits(
            start_timeout=self.mcp_start_timeout,
            call_timeout=self.mcp_call_timeout,
            message_cap=self.mcp_message_cap,
            log_lines=self.mcp_log_lines,
            idle_timeout=self.mcp_idle_timeout,
            most_processes=self.mcp_most_processes,
            memory=self.mcp_memory_limit,
            default_cwd=partial(safe_working_directory, could_write),
        )
