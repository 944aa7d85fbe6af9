"""Follows the server's kernels: connects to each one that starts, and tells the services when one ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol
from weakref import WeakValueDictionary

import zmq.asyncio
from jupyter_client.manager import KernelManager
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_events import EventLogger
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayKernelManager

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.ports import KernelChannel
from jupyter_agentbox.protocol.kernel_actions import KERNEL_ACTIONS
from jupyter_agentbox.trusted_imports import in_kernel

from .channel import Received, ZmqKernelChannel, make_context
from .gateway_channel import GatewayKernelChannel
from .gateway_loading import load_kernel_side
from .gateway_shutdown import note_shutdowns

log = logging.getLogger(__name__)


_LOAD = in_kernel("import jupyter_agentbox\njupyter_agentbox.load_ipython_extension(get_ipython())")

#: Loads the kernel side. In one expression, so that it leaves no name in the user's namespace; a kernel whose
#: environment lacks the package, or has one that does not work there, is left alone: `%load_ext` says what is wrong.
LOAD_CODE = f"""exec('try: exec(code)\\nexcept Exception: pass', {{"code": {_LOAD!r}, "get_ipython": get_ipython}})"""


class KernelListener(Protocol):
    """Listener for kernels and their messages."""

    def kernel_started(self, kernel_id: str, channel: KernelChannel) -> None:
        """Handle the connection to a kernel that started or restarted."""

    def message_received(self, kernel_id: str, comm_id: str, data: JsonValue, *, weight: int) -> None:
        """Handle a kernel's message, with its approximate size in memory in bytes."""

    async def kernel_lost(self, kernel_id: str) -> None:
        """Handle a kernel that ended, died or is about to restart."""


class KernelLifecycle:
    """Keeps a connection to every running kernel: over ZeroMQ, or over its gateway's WebSocket.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's kernels.
    events : EventLogger
        The server's event logger, to which Jupyter's kernel managers report their actions.
    listener : KernelListener
        Receives kernels and messages.
    load_kernel_side : bool
        Whether to load ``%agentbox`` in Python kernels when they start.
    """

    def __init__(
        self, *, kernels: MultiKernelManager, events: EventLogger, listener: KernelListener, load_kernel_side: bool
    ) -> None:
        self._kernels = kernels
        self._listener = listener
        self._load_kernel_side = load_kernel_side
        self._context: zmq.asyncio.Context | None = None
        self._channels: dict[str, ZmqKernelChannel | GatewayKernelChannel] = {}
        #: Kernel id -> what ran when it was attached; ``None`` where Jupyter does not know a process.
        self._processes: dict[str, object] = {}
        self._loads: dict[str, asyncio.Task[None]] = {}
        self._watched: dict[str, tuple[KernelManager, Callable[[], object]]] = {}
        self._following: set[asyncio.Task[None]] = set()
        self._reattaching: dict[str, asyncio.Task[None]] = {}
        # One per kernel: a tool that is slow to stop must not keep other kernels from starting. It lives as long as
        # somebody holds it or waits for it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._is_closed = False
        events.add_listener(schema_id=KERNEL_ACTIONS, listener=self._on_action)

    async def attach_running(self) -> None:
        """Connect to the running kernels."""
        for kernel_id in self._kernels.list_kernel_ids():
            async with self._lock_of(kernel_id):
                if kernel_id not in self._channels:
                    self._attach(kernel_id)

    async def aclose(self) -> None:
        """Disconnect from all kernels, permanently."""
        self._is_closed = True
        for task in self._reattaching.values():
            task.cancel()
        await asyncio.gather(*(self._detach_locked(kernel_id) for kernel_id in list(self._channels)))
        if self._context is not None:
            self._context.destroy()
            self._context = None

    async def _on_action(self, logger: EventLogger, schema_id: str, data: JsonObject) -> None:  # noqa: ARG002  # by name
        kernel_id = data.get("kernel_id")
        if data.get("status") != "success" or not isinstance(kernel_id, str):
            return
        # Whoever may use the server can emit such an event. A kernel with the same process neither ended nor started.
        if data["action"] == "shutdown":
            if not self._has_same_process(kernel_id):
                await self._detach_locked(kernel_id)
        elif data["action"] in ("start", "restart"):
            async with self._lock_of(kernel_id):
                if self._has_same_process(kernel_id):
                    return
                await self._detach(kernel_id)
                if kernel_id in self._kernels and not self._is_closed:
                    self._attach(kernel_id)

    def _has_same_process(self, kernel_id: str) -> bool:
        """Whether an attached kernel's process is known, and the one that was attached."""
        if kernel_id not in self._kernels or kernel_id not in self._channels:
            return False
        process = _process_of(self._kernels.get_kernel(kernel_id))
        return process is not None and process is self._processes.get(kernel_id)

    def _attach(self, kernel_id: str) -> None:
        try:
            self._connect(kernel_id, self._kernels.get_kernel(kernel_id))
        except Exception:
            # A boundary: whatever connection a provisioner returns, Jupyter and the other kernels go on.
            log.exception("kernel %s cannot be reached: its code cannot call tools", kernel_id)

    def _connect(self, kernel_id: str, manager: KernelManager) -> None:
        if isinstance(manager, GatewayKernelManager):
            self._connect_gateway(kernel_id, manager)
            return
        if manager.transport == "tcp" and not manager.control_port:
            log.error(
                "kernel %s has no ports that this server can reach: what started it (%s) gives none. Its code cannot"
                " call tools. Start it by a kernel provisioner that gives the ports of its connection, or behind a"
                " gateway (`--gateway-url`).",
                *(kernel_id, type(manager.provisioner).__name__),
            )
            return
        if self._context is None:
            self._context = make_context()

        def receive(received: Received) -> None:
            if manager.shutting_down:
                # A shutdown first interrupts the cell, which withdraws its calls. Nobody meant to withdraw them: their
                # kernel ends, and `kernel_lost` follows.
                return
            self._listener.message_received(kernel_id, received.comm_id, received.data, weight=received.weight)

        def on_failure() -> None:
            if self._channels.get(kernel_id) is channel:
                self._detach_soon(kernel_id)

        channel = ZmqKernelChannel(manager=manager, context=self._context, receive=receive, on_failure=on_failure)
        self._channels[kernel_id] = channel
        self._processes[kernel_id] = _process_of(manager)
        self._listener.kernel_started(kernel_id, channel)
        self._watch(kernel_id, manager)
        spec = manager.kernel_spec
        if self._load_kernel_side and spec is not None and spec.language.lower() == "python":
            loading = channel.execute_silently(LOAD_CODE)
            self._loads[kernel_id] = in_background(loading, what=f"loading the kernel extension in kernel {kernel_id}")

    def _connect_gateway(self, kernel_id: str, manager: GatewayKernelManager) -> None:
        def receive(received: Received) -> None:
            if not manager.shutting_down:  # as above
                self._listener.message_received(kernel_id, received.comm_id, received.data, weight=received.weight)

        def on_restart() -> None:
            restarted = self._restarted(kernel_id, manager, channel)
            self._soon(restarted, f"following the restart of kernel {kernel_id}")

        def on_end(is_gone: bool) -> None:
            if self._channels.get(kernel_id) is channel:
                self._detach_soon(kernel_id)
                if not is_gone and not self._is_closed:
                    later = in_background(self._reattach(kernel_id), what=f"reaching kernel {kernel_id} again")
                    self._reattaching[kernel_id] = later

        if "shutdown_kernel" not in vars(manager):
            note_shutdowns(manager)
        channel = GatewayKernelChannel(manager=manager, receive=receive, on_restart=on_restart, on_end=on_end)
        self._take_up(kernel_id, manager, channel)

    def _take_up(self, kernel_id: str, manager: GatewayKernelManager, channel: GatewayKernelChannel) -> None:
        self._channels[kernel_id] = channel
        self._listener.kernel_started(kernel_id, channel)
        if self._load_kernel_side:
            loading = load_kernel_side(self._kernels, manager, channel)
            self._loads[kernel_id] = in_background(loading, what=f"loading the kernel extension in kernel {kernel_id}")

    async def _reattach(self, kernel_id: str) -> None:
        """Retry once to connect to a kernel that was unreachable at its gateway, but not reported as gone."""
        await asyncio.sleep(GatewayClient.instance().gateway_retry_interval_max)
        async with self._lock_of(kernel_id):
            self._reattaching.pop(kernel_id, None)  # it may meanwhile have been lost again
            if kernel_id in self._kernels and kernel_id not in self._channels and not self._is_closed:
                self._attach(kernel_id)

    async def _restarted(self, kernel_id: str, manager: GatewayKernelManager, channel: GatewayKernelChannel) -> None:
        async with self._lock_of(kernel_id):
            if self._channels.get(kernel_id) is channel:
                await self._stop_loading(kernel_id)
                await self._listener.kernel_lost(kernel_id)
                self._take_up(kernel_id, manager, channel)

    async def _stop_loading(self, kernel_id: str) -> None:
        load = self._loads.pop(kernel_id, None)
        if load is not None:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)

    async def _detach(self, kernel_id: str) -> None:
        self._unwatch(kernel_id)
        await self._stop_loading(kernel_id)
        channel = self._channels.pop(kernel_id, None)
        self._processes.pop(kernel_id, None)
        if channel is not None:
            await channel.close()
            await self._listener.kernel_lost(kernel_id)

    def _lock_of(self, kernel_id: str) -> asyncio.Lock:
        return self._locks.setdefault(kernel_id, asyncio.Lock())

    async def _detach_locked(self, kernel_id: str) -> None:
        async with self._lock_of(kernel_id):
            await self._detach(kernel_id)

    def _detach_soon(self, kernel_id: str) -> None:
        self._soon(self._detach_locked(kernel_id), f"disconnecting from kernel {kernel_id}")

    def _soon(self, work: Coroutine[object, object, None], what: str) -> None:
        task = in_background(work, what=what)
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    def _watch(self, kernel_id: str, manager: KernelManager) -> None:
        """Also handle a kernel that dies and is not restarted, of which there is no event."""

        def on_dead() -> None:
            self._detach_soon(kernel_id)

        manager.add_restart_callback(on_dead, "dead")
        self._watched[kernel_id] = manager, on_dead

    def _unwatch(self, kernel_id: str) -> None:
        if kernel_id in self._watched:
            manager, on_dead = self._watched.pop(kernel_id)
            manager.remove_restart_callback(on_dead, "dead")


def _process_of(manager: Any) -> object | None:
    """Return the process of a kernel that runs on this machine, as its provisioner has it."""
    return getattr(manager.provisioner, "process", None)
