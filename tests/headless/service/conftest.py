"""Services with places of their own, one of them with its kernel kept for a whole file."""

from __future__ import annotations

from tests.headless.executor.conftest import places

__all__ = ["places"]
