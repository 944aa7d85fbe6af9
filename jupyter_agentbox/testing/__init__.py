"""Helpers for tests of the services and of your own extensions: fakes of everything external, and a scripted model."""

from __future__ import annotations

from .fakes import (
    TIMEOUT,
    FakeAnnouncer,
    FakeClock,
    FakeIds,
    FakeKernelChannel,
    FakeNotebookFinder,
    FakeTools,
    MemoryApprovalStore,
)
from .model_formats import FunctionCall, Message
from .model_server import MockModelServer, ModelRequest

__all__ = [
    "TIMEOUT",
    "FakeAnnouncer",
    "FakeClock",
    "FakeIds",
    "FakeKernelChannel",
    "FakeNotebookFinder",
    "FakeTools",
    "FunctionCall",
    "MemoryApprovalStore",
    "Message",
    "MockModelServer",
    "ModelRequest",
]
