"""Which process runs which tests, and in what order, where `make pytest` has several."""

from __future__ import annotations

from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

#: A folder whose tests share what is very slow to start. One process runs the whole of it.
WHOLE: Final = ("tests/hub/",)

#: Folder after folder, so that what its tests share is started once in a process, and is stopped when it goes on to the
#: next. What takes longest comes first, so that short files even out the end.
FIRST: Final = (
    "tests/browser/",
    "tests/attacks/",
    *WHOLE,
    "tests/packaging/",
    "tests/headless/",
    "tests/mcp_server/",
    "tests/sandbox/",
    "tests/integration/",
    "tests/demo/",
    "tests/fuzz/",
    "tests/kernel/",
    "tests/mcp_client/",
)


class InOrder(LoadScopeScheduling):
    """Hands out files, or whole folders where tests share much, in the order of the items."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        # Else it would begin with what has many tests, and files of several folders would take turns.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in WHOLE if file.startswith(folder)), file)


def rank(item: pytest.Item) -> int:
    """Return the place of a test's folder in the order."""
    return next((number for number, folder in enumerate(FIRST) if item.nodeid.startswith(folder)), len(FIRST))
