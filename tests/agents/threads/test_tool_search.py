from __future__ import annotations

from collections.abc import Sequence

import pytest

from jupyter_agentbox.agents.threads.ports import ToolLine
from jupyter_agentbox.agents.threads.tool_search import search_tools
from jupyter_agentbox.exceptions import ToolServerError


class ManyTools:
    """A catalog of 1,203 tools on two servers, and a server that is down."""

    def names(self) -> Sequence[str]:
        return ["git", "shop", "broken"]

    async def tools(self, server: str) -> Sequence[ToolLine]:
        if server == "broken":
            raise ToolServerError("it does not start")
        words = ("commit", "branch") if server == "git" else ("order", "restock")
        count = 600 if server == "git" else 603
        return [
            ToolLine(server=server, name=f"{words[n % 2]}_{n}", summary=f"{words[n % 2]} number {n} " * 50)
            for n in range(count)
        ]

    async def documentation(self, server: str, tool: str) -> str:
        raise AssertionError(f"not asked for: {server}.{tool}")


@pytest.mark.parametrize("query", ["", "restock", "number"])
async def test_an_answer_over_a_thousand_tools_is_short(query: str) -> None:
    text = await search_tools(ManyTools(), query)

    assert len(text) < 4_500  # some 1,100 tokens
    assert "(broken: it does not start)" in text


async def test_the_overview_counts_the_tools_of_each_server() -> None:
    assert (await search_tools(ManyTools(), "")).splitlines()[:2] == ["git: 600 tools", "shop: 603 tools"]


async def test_words_in_a_tools_name_count_most() -> None:
    assert (await search_tools(ManyTools(), "restock 7")).splitlines()[0].startswith("shop.restock_7:")


async def test_words_that_fit_nothing_say_so() -> None:
    assert "No tool matches" in await search_tools(ManyTools(), "weather")
