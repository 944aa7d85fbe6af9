from __future__ import annotations

import logging
from pathlib import Path

import pytest

from jupyter_agentbox import CodeExecutionError, CodeExecutor
from jupyter_agentbox.headless import executor as module


async def test_what_was_made_for_a_kernel_that_does_not_start_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    class LocalBackend(module.LocalBackend):
        async def aclose(self) -> None:
            await super().aclose()
            closed.append(self)

    monkeypatch.setattr(module, "LocalBackend", LocalBackend)
    executor = CodeExecutor(working_dir=tmp_path / "no such place")

    with pytest.raises(CodeExecutionError):
        await executor.start()

    assert len(closed) == 1


@pytest.mark.parametrize(("given", "level"), [(None, logging.ERROR), ("INFO", logging.INFO)])
def test_level_of_the_logger_is_left_alone_unless_one_is_given(given: str | None, level: int) -> None:
    logger = logging.getLogger("jupyter_agentbox")
    before = logger.level
    try:
        logger.setLevel(logging.ERROR)
        CodeExecutor(log_level=given)
        assert logger.level == level
    finally:
        logger.setLevel(before)
