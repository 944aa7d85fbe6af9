"""The demo shop, called through the real SDK client."""

from __future__ import annotations

import base64
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ImageContent, TextContent

from jupyter_agentbox.demo.database import Shop
from jupyter_agentbox.demo.shop import build_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

READING = {
    "list_products",
    "list_orders",
    "get_order",
    "sales_by_month",
    "query",
    "sales_chart",
    "forecast",
}


@pytest.fixture
def connect(tmp_path: Path) -> Callable[[], AbstractAsyncContextManager[Client]]:
    """Return a context manager: a client of a fresh shop."""

    @asynccontextmanager
    async def _connect() -> AsyncIterator[Client]:
        async with Client(build_server(Shop(tmp_path / "shop.sqlite"))) as client:
            yield client

    return _connect


async def value_of(client: Client, tool: str, **arguments: object) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content.get("result", result.structured_content)


async def error_of(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def test_every_tool_says_what_it_does_and_whether_it_only_reads(connect: Any) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) > READING
    for name, tool in tools.items():
        assert tool.title
        assert tool.description
        assert tool.annotations.read_only_hint is (name in READING)
        assert all("description" in schema for schema in tool.input_schema["properties"].values())
        assert (tool.output_schema is None) == (name == "sales_chart")


async def test_destructive_tools_are_marked(connect: Any) -> None:
    async with connect() as client:
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools if tool.annotations.destructive_hint} == {"delete_order", "set_price"}


async def test_products_are_filtered_by_category_and_stock(connect: Any) -> None:
    async with connect() as client:
        everything = await value_of(client, "list_products")
        low = await value_of(client, "list_products", category="tea", low_stock=True)
    assert len(everything) == 10
    assert low == [{"id": 4, "name": "Earl Grey Blue Flower", "category": "tea", "price": 9.9, "stock": 7}]


async def test_every_shop_starts_with_the_same_orders(tmp_path: Path) -> None:
    shops = [Shop(tmp_path / f"{number}.sqlite") for number in range(2)]
    assert shops[0].orders(None, None, 500) == shops[1].orders(None, None, 500)


async def test_orders_come_newest_first(connect: Any) -> None:
    async with connect() as client:
        orders = await value_of(client, "list_orders", limit=5)
    assert [order["ordered_on"] for order in orders] == sorted((order["ordered_on"] for order in orders), reverse=True)


async def test_orders_are_filtered_by_status_and_customer(connect: Any) -> None:
    async with connect() as client:
        orders = await value_of(client, "list_orders", status="shipped", customer="ada", limit=3)
    assert {(order["customer"], order["status"]) for order in orders} == {("Ada Nilsen", "shipped")}


async def test_an_orders_total_is_the_sum_of_its_lines(connect: Any) -> None:
    async with connect() as client:
        order = await value_of(client, "get_order", order_id=1042)
    assert order["total"] == pytest.approx(sum(line["quantity"] * line["unit_price"] for line in order["lines"]))


async def test_an_unknown_order_is_a_tool_error(connect: Any) -> None:
    async with connect() as client:
        assert (await error_of(client, "get_order", order_id=1)).endswith("There is no order 1.")
        assert (await error_of(client, "delete_order", order_id=1)).endswith("There is no order 1.")


async def test_sales_have_every_month_of_the_year(connect: Any) -> None:
    async with connect() as client:
        months = await value_of(client, "sales_by_month")
    assert [month["month"] for month in months] == [f"2025-{month:02}" for month in range(1, 13)]
    assert all(month["revenue"] > 0 for month in months)


async def test_an_order_takes_its_products_from_the_stock(connect: Any) -> None:
    async with connect() as client:
        order = await value_of(client, "add_order", customer="Zoe", lines=[{"product_id": 9, "quantity": 2}])
        stock = (await value_of(client, "list_products"))[8]["stock"]
    assert (order["total"], order["status"], stock) == (84.0, "open", 10)


async def test_an_order_that_cannot_be_filled_changes_nothing(connect: Any) -> None:
    lines = [{"product_id": 9, "quantity": 1}, {"product_id": 10, "quantity": 1}]
    async with connect() as client:
        before = await value_of(client, "query", sql="SELECT COUNT(*) FROM orders")
        await error_of(client, "add_order", customer="Zoe", lines=lines)
        await error_of(client, "add_order", customer="Zoe", lines=[{"product_id": 99}])
        stock = (await value_of(client, "list_products"))[8]["stock"]
        after = await value_of(client, "query", sql="SELECT COUNT(*) FROM orders")
    assert (before, stock) == (after, 12)


async def test_price_and_stock_change(connect: Any) -> None:
    async with connect() as client:
        priced = await value_of(client, "set_price", product_id=1, price=13.5)
        stocked = await value_of(client, "restock", product_id=1, quantity=6)
        await error_of(client, "restock", product_id=99, quantity=1)
    assert (priced["price"], stocked["stock"]) == (13.5, 90)


async def test_a_deleted_order_is_gone_with_its_lines(connect: Any) -> None:
    async with connect() as client:
        total = (await value_of(client, "get_order", order_id=1042))["total"]
        deletion = await value_of(client, "delete_order", order_id=1042)
        lines = await value_of(client, "query", sql="SELECT * FROM order_lines WHERE order_id = 1042")
    assert deletion == {"deleted_order": 1042, "revenue_lost": total}
    assert lines["rows"] == []


async def test_a_query_returns_columns_and_rows(connect: Any) -> None:
    async with connect() as client:
        table = await value_of(client, "query", sql="SELECT id, name FROM products ORDER BY id", limit=1)
    assert table == {"columns": ["id", "name"], "rows": [[1, "Sencha"]], "truncated": True}


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM orders",
        "UPDATE products SET stock = 0",
        "ATTACH DATABASE '/etc/passwd' AS other",
        "PRAGMA query_only = OFF",
        "SELECT 1; DELETE FROM orders",
        "SELECT load_extension('x')",
        "this is no SQL",
        "",
    ],
)
async def test_a_query_can_only_read(connect: Any, sql: str) -> None:
    async with connect() as client:
        if sql:
            await error_of(client, "query", sql=sql)
        else:
            assert await value_of(client, "query", sql=sql) == {"columns": [], "rows": [], "truncated": False}
        assert await value_of(client, "query", sql="SELECT MIN(stock), COUNT(*) FROM products") == {
            "columns": ["MIN(stock)", "COUNT(*)"],
            "rows": [[0, 10]],
            "truncated": False,
        }


async def test_an_endless_query_ends(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_agentbox.demo.database.QUERY_SECONDS", 0.05)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
    async with connect() as client:
        await error_of(client, "query", sql=endless)


async def test_the_chart_is_a_png(connect: Any) -> None:
    async with connect() as client:
        result = await client.call_tool("sales_chart", {"measure": "orders"})
        empty = await client.call_tool("sales_chart", {"year": 2001})
    for content in (*result.content, *empty.content):
        assert isinstance(content, ImageContent)
        assert content.mime_type == "image/png"
        assert base64.b64decode(content.data).startswith(b"\x89PNG\r\n\x1a\n")


async def test_the_forecast_reports_progress(connect: Any) -> None:
    reports: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total))

    async with connect() as client:
        result = await client.call_tool("forecast", {"months": 2, "seconds": 0}, progress_callback=note)
    assert [month["month"] for month in result.structured_content["result"]] == ["2026-01", "2026-02"]
    assert reports == [(step, 40) for step in range(41)]


async def test_a_forecast_without_a_full_year_is_a_tool_error(connect: Any) -> None:
    async with connect() as client:
        january = await value_of(client, "query", sql="SELECT id FROM orders WHERE ordered_on < '2025-02'")
        for (order_id,) in january["rows"]:
            await value_of(client, "delete_order", order_id=order_id)
        await error_of(client, "forecast", seconds=0)


async def test_bad_arguments_are_refused(connect: Any) -> None:
    async with connect() as client:
        await error_of(client, "set_price", product_id=1, price=-1)
        await error_of(client, "list_orders", limit=0)


async def test_the_server_runs_as_a_process_on_stdio(tmp_path: Path) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "jupyter_agentbox.demo.shop"],
        env={"AGENTBOX_SHOP_DATABASE": str(tmp_path / "shop.sqlite")},
    )
    async with Client(server) as client:
        assert len(await value_of(client, "list_products")) == 10
    assert (tmp_path / "shop.sqlite").exists()
