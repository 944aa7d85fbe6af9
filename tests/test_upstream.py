"""What we use of others that they do not promise: each is here, with the place that uses it, and fails when it moves.

A part that is gone or takes other arguments would mostly not fail loudly by itself: a method that nobody calls any more
is silent. So the shapes are compared.
"""

from __future__ import annotations

import ast
import concurrent.futures.thread
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import ipykernel.debugger
import ipykernel.kernelapp
import ipywidgets.widgets.widget
import pytest
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magics.script import ScriptMagics
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_server.services.contents.filecheckpoints import AsyncFileCheckpoints, FileCheckpoints
from jupyter_server.services.contents.filemanager import AsyncFileContentsManager, FileContentsManager
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager, LargeFileManager
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from mcp.shared._stream_protocols import ReadStream, WriteStream
from openai import AsyncStream
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert
from tornado import httpclient
from tornado.web import RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketClientConnection, WebSocketProtocol13

import jupyter_agentbox

#: Private names of others: each is looked at below, or, for OpenAI's `_models`, where its events are tested.
PRIVATE: Final = {
    "_DEFAULTS",
    "_RequestProxy",
    "_abort",
    "_cast_to",
    "_dir_model",
    "_fid",
    "_get_os_path",
    "_handle_message",
    "_headers_written",
    "_instances",
    "_is_debugpy_available",
    "_kernel_dirs_default",
    "_last_traceback_during_displayhook",
    "_models",
    "_pending_kernels",
    "_process_children",
    "_save_large_file",
    "_should_watch",
    "_stream_protocols",
    "_threads_queues",
}
#: Names that look private and are promised, or are no names of Python.
PROMISED: Final = {"_", "__CF_USER_TEXT_ENCODING", "_FreeForm", "_JAVA_OPTIONS", "_ctypes", "_exit", "_meta", "_thread"}

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
    "bridge.kernel_environment": [
        (MultiKernelManager.pre_start_kernel, ["kernel_name", "kwargs"]),
        (MultiKernelManager.update_env, ["kernel_id", "env"]),
    ],
    "bridge.skipping_socket": [
        (WebSocketClientConnection.headers_received, ["start_line", "headers"]),
        (WebSocketClientConnection.get_websocket_protocol, []),
        (WebSocketClientConnection.on_ws_connection_close, ["close_code", "close_reason"]),
        (WebSocketProtocol13._receive_frame, []),
        (WebSocketProtocol13._read_bytes, ["n"]),
        (WebSocketProtocol13._handle_message, ["opcode", "data"]),
        (WebSocketProtocol13._abort, []),
    ],
    "sandbox.kernelspecs": [(KernelSpecManager._kernel_dirs_default, [])],
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


@pytest.mark.parametrize("place", sorted(METHODS))
def test_the_place_that_uses_a_method_is_there(place: str) -> None:
    assert importlib.util.find_spec(f"jupyter_agentbox.{place}") is not None


def test_no_private_name_of_others_is_used_that_is_not_looked_at_here() -> None:
    trees = [ast.parse(path.read_text()) for path in Path(jupyter_agentbox.__path__[0]).rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    ours = {name for node in nodes for name in names_defined(node)}
    used = {name for node in nodes for name in names_used(node) if name.startswith("_") and not name.endswith("__")}
    assert used - ours - PROMISED == PRIVATE


def names_defined(node: ast.AST) -> Iterator[str]:
    """Yield the names that we give to something."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
            yield name


def names_used(node: ast.AST) -> Iterator[str]:
    """Yield the names that are looked up in something, or imported from others."""
    match node:
        case ast.Attribute(attr=name):
            yield name
        case ast.Constant(value=str(name)) if name.isidentifier():
            yield name  # as of `getattr`
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from (part for part in module.split("."))
            yield from (each.name for each in names)


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


def test_ipykernel_keeps_whether_a_value_could_not_be_displayed() -> None:
    assert "_last_traceback_during_displayhook = " in inspect.getsource(ZMQInteractiveShell)
    assert "_last_traceback_during_displayhook" in inspect.getsource(IPythonKernel)


def test_ipywidgets_knows_its_widgets_by_a_table() -> None:
    assert isinstance(ipywidgets.widgets.widget._instances, dict)


def test_tornado_reads_frames_by_the_parts_that_are_used() -> None:
    assert uses(WebSocketProtocol13._read_bytes, "_wire_bytes_in")
    assert uses(WebSocketClientConnection.headers_received, "get_websocket_protocol")
    assert httpclient._RequestProxy(httpclient.HTTPRequest("http://x/"), httpclient.HTTPRequest._DEFAULTS).url


def test_tornado_notes_that_the_head_of_an_answer_was_sent() -> None:
    assert uses(RequestHandler.flush, "_headers_written")


def test_openais_streams_build_their_events_by_a_type_that_can_be_changed() -> None:
    assert uses(AsyncStream.__init__, "_cast_to")


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
