"""`generate_mcp_sources`: a server's tools as a Python package on disk."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.paths import register_server

if TYPE_CHECKING:
    from jupyter_agentbox.mcp_client.limits import ServerLimits

ListTools: TypeAlias = "Callable[[str, Mapping[str, Any], ServerLimits], Awaitable[list[ToolDescription]]]"

#: The parameters that are paths.
_PATHS: Final = frozenset({"cwd", "envFile"})
#: Stands in each file that ipybox generates: the package's, and its tools'.
_PEERS: Final = re.compile(
    r"^(from (mcpygen|ipybox)\.tool_exec\.client import ToolRunner|from \. import CLIENT)$", re.MULTILINE
)


async def generate_mcp_sources(
    server_name: str, server_params: Mapping[str, Any], root_dir: Path | str, async_api: bool = False
) -> list[str]:
    """Write a package with a module for each tool of an MCP server.

    ::

        await generate_mcp_sources("weather", {"command": "weather-server"}, Path("mcptools"))

        # in the kernel, where `mcptools` can be imported
        from mcptools.weather.forecast import Params, run

        run(Params(city="Oslo")).temperature

    The package names the server and holds nothing else of its parameters. They are kept for this user's executors, in
    a file that only this user can read; a server of that name that was given before is replaced.

    Parameters
    ----------
    server_name : str
        The package's name, and the server's in rules and requests.
    server_params : mapping
        An entry as in ``mcp.json``: ``command``, ``args``, ``env`` and ``cwd``, or ``url`` and ``headers``. In strings,
        ``${NAME}`` stands for an environment variable when the server starts, so that no secret is written anywhere.
        A relative ``cwd`` or ``envFile`` is taken from where this process works now.
    root_dir : Path
        Where the package is written; made if need be. What an earlier call wrote there under this name, or ipybox did,
        is removed.
    async_api : bool
        Whether ``run`` is a coroutine function.

    Returns
    -------
    list of str
        The names of the tools' modules, in the server's order.

    Raises
    ------
    ValueError
        If `server_name` cannot be the name of a package.
    FileExistsError
        If there is something of that name that an earlier call did not write.
    ToolServerError
        If the server does not start or list its tools.
    """
    if not server_name.isidentifier():
        raise ValueError(f"`{server_name}` cannot be the name of a Python package: use letters, digits and `_`")
    directory = Path(root_dir) / server_name
    if directory.exists():
        _check_is_ours(directory)
    parameters = absolute_paths(server_params)
    tools = await list_tools_of(server_name, parameters)
    from jupyter_agentbox.codegen import packages  # noqa: PLC0415  # only where sources are written

    package = packages.generate_package(server_name, tools, is_async=async_api)
    await asyncio.to_thread(_write, directory, package.files)
    register_server(server_name, parameters)
    return list(package.modules)


def absolute_paths(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server's parameters as JSON, with relative paths made absolute."""
    plain: dict[str, Any] = {name: _plain(value) for name, value in parameters.items()}
    for name in _PATHS & plain.keys():
        path = plain[name]
        # a variable at the start may stand for an absolute path
        if isinstance(path, str) and path and not path.startswith(("~", "${")):
            plain[name] = str(Path(path).absolute())
    return plain


async def list_tools_of(name: str, parameters: Mapping[str, Any]) -> list[ToolDescription]:
    """Start a server that is in no configuration, list its tools, and stop it.

    Raises
    ------
    ToolServerError
        If it does not start or list its tools.
    """
    list_tools, limits = await asyncio.to_thread(_load_client)
    return await list_tools(name, parameters, limits)


def _load_client() -> tuple[ListTools, ServerLimits]:
    # Late and in a thread: the MCP SDK takes a second to import.
    from jupyter_agentbox.mcp_client.limits import ServerLimits, safe_working_directory  # noqa: PLC0415
    from jupyter_agentbox.mcp_client.registry import list_tools_of  # noqa: PLC0415
    from jupyter_agentbox.sandbox.server.writable_directories import could_write  # noqa: PLC0415

    return list_tools_of, ServerLimits(default_cwd=partial(safe_working_directory, could_write))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _check_is_ours(directory: Path) -> None:
    from jupyter_agentbox.codegen.packages import MARK  # noqa: PLC0415  # as above

    for path in directory.iterdir():
        if path.name == "__pycache__":
            continue
        text = path.read_text("utf-8", errors="replace") if path.suffix == ".py" else ""
        if not text.startswith(MARK) and not _PEERS.search(text):
            raise FileExistsError(f"`{path}` exists and was not generated by an earlier call: move it away first")


def _write(directory: Path, files: Mapping[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.glob("*.py"):
        if path.name not in files:
            path.unlink()
    for name, source in files.items():
        (directory / name).write_text(source, "utf-8")
