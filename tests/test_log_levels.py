from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from jupyter_agentbox.log_levels import set_log_level


@pytest.fixture(autouse=True)
def same_levels() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("", "jupyter_agentbox")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize("level", ["DEBUG", logging.INFO])
def test_libraries_that_log_addresses_and_messages_stay_quiet(level: int | str) -> None:
    set_log_level(level)

    for name in ("httpx2", "httpcore2", "mcp.client.streamable_http", "openai", "anything.else"):
        assert logging.getLogger(name).getEffectiveLevel() == logging.WARNING
    assert logging.getLogger("jupyter_agentbox.hub").isEnabledFor(logging.INFO)


def test_a_higher_level_counts_for_all() -> None:
    set_log_level("ERROR")

    assert logging.getLogger("httpx2").getEffectiveLevel() == logging.ERROR
    assert not logging.getLogger("jupyter_agentbox.hub").isEnabledFor(logging.WARNING)
