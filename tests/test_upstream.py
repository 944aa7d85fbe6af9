"""What we use of others that they do not promise: each is here, with the place that uses it, and fails when it moves.

A part that is gone or takes other arguments would mostly not fail loudly by itself: a method that nobody calls any more
is silent. So the shapes are compared.
"""

from __future__ import annotations

import concurrent.futures.thread
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ipykernel.debugger
import ipykernel.kernelapp
import pytest
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magics.script import ScriptMagics
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_server.services.contents.filecheckpoints import AsyncFileCheckpoints, FileCheckpoints
from jupyter_server.services.contents.filemanager import AsyncFileContentsManager, FileContentsManager
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager, LargeFileManager
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from mcp.shared._stream_protocols import ReadStream, WriteStream
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert
from tornado.web import StaticFileHandler

#: (what, its parameters without `self`) by the place that replaces, overrides or calls it.
METHODS: dict[str, list[tuple[Callable[..., Any], list[str]]]] = {
    "kernel_app.launcher": [
        (IOPubThread.schedule, ["f"]),
        (IOPubThread._handle_event, ["msg"]),
        (IPKernelApp.init_path, []),
        (IPKernelApp.init_iopub, ["context"]),
        (IPKernelApp.init_kernel, []),
        (IPKernelApp.log_connection_info, []),
        (Kernel._process_children, []),
    ],
    "kernel_app.streams": [
        (OutStream._flush, []),
        (OutStream._watch_pipe_fd, []),
        (OutStream.flush, []),
        (OutStream.write, ["string"]),
    ],
    "bridge.model_keys": [
        (MultiKernelManager.pre_start_kernel, ["kernel_name", "kwargs"]),
        (MultiKernelManager.update_env, ["kernel_id", "env"]),
    ],
    "sandbox.inside.bootstrap": [
        (ZMQInteractiveShell.system_raw, ["cmd"]),
        (IPythonKernel.do_debug_request, ["msg"]),
        (IPKernelApp.init_path, []),
    ],
    "kernel.shell": [
        (InteractiveShell.getoutput, ["cmd", "split", "depth"]),
        (InteractiveShell.var_expand, ["cmd", "depth", "formatter"]),
        (ZMQInteractiveShell.system_piped, ["cmd"]),
        (ScriptMagics.shebang, ["line", "cell"]),
    ],
    "contents.managers": [
        (FileContentsManager.open, ["os_path", "args", "kwargs"]),
        (FileContentsManager.atomic_writing, ["os_path", "args", "kwargs"]),
        (FileContentsManager._copy, ["src", "dest"]),
        (AsyncFileContentsManager._copy, ["src", "dest"]),
        (FileContentsManager._get_os_path, ["path"]),
        (FileContentsManager._dir_model, ["path", "content"]),
        (AsyncFileContentsManager._dir_model, ["path", "content"]),
        (LargeFileManager._save_large_file, ["os_path", "content", "format"]),
        (AsyncLargeFileManager._save_large_file, ["os_path", "content", "format"]),
        (FileCheckpoints.checkpoint_path, ["checkpoint_id", "path"]),
        (FileCheckpoints.delete_checkpoint, ["checkpoint_id", "path"]),
        (FileCheckpoints.rename_checkpoint, ["checkpoint_id", "old_path", "new_path"]),
        (AsyncFileCheckpoints.delete_checkpoint, ["checkpoint_id", "path"]),
        (AsyncFileCheckpoints.rename_checkpoint, ["checkpoint_id", "old_path", "new_path"]),
    ],
    "contents.served_files": [
        (StaticFileHandler.validate_absolute_path, ["root", "absolute_path"]),
        (StaticFileHandler.get_content_type, []),
    ],
    "headless.gateway_server": [(KernelWebsocketHandler.open, ["kernel_id"])],
}


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        pytest.param(method, parameters, id=f"{place}: {method.__qualname__}")
        for place, methods in METHODS.items()
        for method, parameters in methods
    ],
)
def test_a_method_is_there_with_its_parameters(method: Callable[..., Any], parameters: list[str]) -> None:
    found = list(inspect.signature(inspect.unwrap(method)).parameters)
    assert found[found[0] == "self" :] == parameters


def uses(function: Callable[..., Any], *names: str) -> bool:
    """Say whether a function reads attributes or globals of these names."""
    return set(names) <= set(inspect.unwrap(function).__code__.co_names)


def test_ipykernel_makes_its_output_thread_by_the_name_that_is_replaced() -> None:
    assert uses(IPKernelApp.init_iopub, "IOPubThread")
    assert ipykernel.kernelapp.IOPubThread is IOPubThread
    assert uses(IOPubThread.schedule, "_events", "_event_pipe")  # what `EagerThread` appends to, and then wakes


def test_ipykernels_streams_read_the_pipe_by_the_attributes_that_are_used() -> None:
    assert uses(OutStream._watch_pipe_fd, "_fid")
    assert "_should_watch" in inspect.getsource(OutStream)


def test_ipykernel_prints_how_to_connect_to_the_stream_that_is_swapped() -> None:
    assert uses(IPKernelApp.log_connection_info, "__stdout__")


def test_ipykernel_looks_for_its_debugger_once_by_the_name_that_is_replaced() -> None:
    assert isinstance(ipykernel.debugger._is_debugpy_available, bool)
    assert "debugpy" in inspect.getsource(ipykernel.debugger)


def test_ipykernel_dispatches_control_messages_by_the_table_that_is_extended() -> None:
    assert uses(Kernel.process_control, "control_handlers", "get")


def test_python_knows_the_threads_of_its_pools_by_a_table() -> None:
    assert concurrent.futures.thread._threads_queues is not None  # type: ignore[attr-defined]  # this is the point


def test_jupyter_keeps_kernels_that_are_being_started_in_a_table() -> None:
    assert isinstance(MultiKernelManager()._pending_kernels, dict)


def test_the_mcp_sdks_transports_are_two_streams() -> None:
    assert all(hasattr(ReadStream, name) for name in ("receive", "aclose"))
    assert all(hasattr(WriteStream, name) for name in ("send", "aclose"))


def test_sqlalchemy_compiles_for_sqlite_by_position_and_gives_its_driver() -> None:
    engine = create_engine("sqlite://")
    table = Table("t", MetaData(), Column("a", Integer), Column("b", Integer))
    compiled: Any = insert(table).compile(dialect=engine.dialect)
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        assert compiled.positiontup == ["a", "b"]
        assert str(compiled) == "INSERT INTO t (a, b) VALUES (?, ?)"
        assert type(driver).__module__ == "sqlite3"
    engine.dispose()


def test_a_server_without_the_slow_grammar_of_addresses_checks_every_format_but_those() -> None:
    # What `headless.gateway_server` does; `rfc3987`, which only the tests install, would hide what it saves.
    code = """
import sys
sys.modules["rfc3987"] = sys.modules["rfc3987_syntax"] = None
import jupyter_server.serverapp
from jsonschema import Draft202012Validator
assert "lark" not in sys.modules
missing = {"iri", "iri-reference"}
assert not missing & set(Draft202012Validator.FORMAT_CHECKER.checkers)
assert {"date-time", "uri", "uri-reference"} <= set(Draft202012Validator.FORMAT_CHECKER.checkers)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
