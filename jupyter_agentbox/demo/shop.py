"""The demo shop as an MCP server on stdio: ``python -m jupyter_agentbox.demo.shop``.

The shop is a SQLite file. ``AGENTBOX_SHOP_DATABASE`` is its path; by default, each start creates a new one in a
temporary directory.
"""

from __future__ import annotations

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from jupyter_agentbox.demo.chart import bar_chart
from jupyter_agentbox.demo.database import Shop, ShopError
from jupyter_agentbox.demo.forecasts import forecast_months
from jupyter_agentbox.demo.records import (
    Category,
    Deletion,
    Forecast,
    MonthlySales,
    NewLine,
    Order,
    OrderStatus,
    OrderSummary,
    Product,
    Table,
)
from jupyter_agentbox.demo.seed import YEAR

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
OVERWRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)

#: Stock at which a product counts as running low.
LOW_STOCK = 10

OrderId = Annotated[int, Field(description="The order's number, such as 1042")]
ProductId = Annotated[int, Field(description="The product's id, as list_products gives it")]
Year = Annotated[int, Field(ge=2000, le=2100, description="A calendar year; the shop opened in 2025")]


class ShopTools:
    """The tools of one shop, each a method that `build_server` registers.

    Parameters
    ----------
    shop : Shop
        The shop that the tools use.
    """

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def list_products(
        self,
        category: Annotated[Category | None, Field(description="Only this category")] = None,
        low_stock: Annotated[bool, Field(description="Only products with 10 pieces or fewer")] = False,
    ) -> list[Product]:
        """List what the shop sells, with prices in euros and the stock."""
        return self._shop.products(category, max_stock=LOW_STOCK if low_stock else None)

    def list_orders(
        self,
        status: Annotated[OrderStatus | None, Field(description="Only orders with this status")] = None,
        customer: Annotated[str | None, Field(description="Only customers whose name contains this text")] = None,
        limit: Annotated[int, Field(ge=1, le=500, description="At most so many, newest first")] = 20,
    ) -> list[OrderSummary]:
        """List orders, newest first."""
        return self._shop.orders(status, customer, limit)

    def get_order(self, order_id: OrderId) -> Order:
        """Show one order with its lines and note."""
        return _answer(lambda: self._shop.order(order_id))

    def sales_by_month(self, year: Year = YEAR) -> list[MonthlySales]:
        """Add up orders and revenue for each month of a year. Returned orders do not count."""
        return self._shop.monthly_sales(year)

    def query(
        self,
        sql: Annotated[
            str,
            Field(
                description="One SELECT. Tables: products(id, name, category, price_cents, stock), "
                "orders(id, customer, ordered_on, status, note), "
                "order_lines(order_id, product_id, quantity, unit_cents)"
            ),
        ],
        limit: Annotated[int, Field(ge=1, le=1000, description="At most so many rows")] = 100,
    ) -> Table:
        """Run a SQL query on the shop's database. It can read and nothing else."""
        return _answer(lambda: self._shop.query(sql, limit))

    def sales_chart(
        self,
        year: Year = YEAR,
        measure: Annotated[Literal["revenue", "orders"], Field(description="What the bars show")] = "revenue",
    ) -> Image:
        """Draw a bar chart of a year's sales by month, as a PNG image."""
        months = self._shop.monthly_sales(year)
        title = f"{'Revenue in euros' if measure == 'revenue' else 'Orders'}, {year}"
        bars = [(month.month, month.revenue if measure == "revenue" else month.orders) for month in months]
        return Image(data=bar_chart(title, bars), format="png")

    def add_order(
        self,
        customer: Annotated[str, Field(min_length=1, description="The customer's full name")],
        lines: Annotated[list[NewLine], Field(min_length=1, description="What is ordered")],
        note: Annotated[str, Field(description="A note for the person who packs it")] = "",
    ) -> Order:
        """Place an order at today's prices and take its products from the stock."""
        return _answer(lambda: self._shop.add_order(customer, lines, note, datetime.now().astimezone().date()))

    def set_price(
        self, product_id: ProductId, price: Annotated[float, Field(gt=0, le=10_000, description="The price in euros")]
    ) -> Product:
        """Change a product's price. Orders that were placed keep theirs."""
        return _answer(lambda: self._shop.set_price(product_id, round(price * 100)))

    def restock(
        self, product_id: ProductId, quantity: Annotated[int, Field(ge=1, le=10_000, description="How many arrived")]
    ) -> Product:
        """Add pieces that arrived to a product's stock."""
        return _answer(lambda: self._shop.restock(product_id, quantity))

    def delete_order(self, order_id: OrderId) -> Deletion:
        """Delete an order for good. There is no undo, and the month's sales change."""
        return _answer(lambda: self._shop.delete_order(order_id))

    async def forecast(
        self,
        context: Context,
        months: Annotated[int, Field(ge=1, le=12, description="How many months ahead")] = 3,
        seconds: Annotated[float, Field(ge=0, le=120, description="How long the simulation takes, in seconds")] = 8.0,
    ) -> list[Forecast]:
        """Simulate the coming months' revenue. It takes a while and reports its progress."""
        steps = 40
        for step in range(steps):
            await context.report_progress(step, steps, f"Simulated {step * 25} of {steps * 25} years")
            await anyio.sleep(seconds / steps)
        await context.report_progress(steps, steps, "Done")
        return _answer(lambda: forecast_months(self._shop.monthly_sales(YEAR), months))


def _answer(work: Callable[[], Answer]) -> Answer:
    try:
        return work()
    except ShopError as error:
        raise ToolError(str(error)) from error


def build_server(shop: Shop) -> MCPServer:
    """Return an MCP server with the shop's tools."""
    tools = ShopTools(shop)
    server = MCPServer(
        "shop",
        title="Demo shop",
        instructions="A small shop that sells tea, coffee and pottery. Prices are in euros.",
        log_level="WARNING",
    )
    server.add_tool(tools.list_products, title="List products", annotations=READS)
    server.add_tool(tools.list_orders, title="List orders", annotations=READS)
    server.add_tool(tools.get_order, title="Show an order", annotations=READS)
    server.add_tool(tools.sales_by_month, title="Sales by month", annotations=READS)
    server.add_tool(tools.query, title="Query the database", annotations=READS)
    server.add_tool(tools.sales_chart, title="Chart of sales", annotations=READS)
    server.add_tool(tools.forecast, title="Forecast sales", annotations=READS)
    server.add_tool(tools.add_order, title="Place an order", annotations=ADDS)
    server.add_tool(tools.restock, title="Restock a product", annotations=ADDS)
    server.add_tool(tools.set_price, title="Change a price", annotations=OVERWRITES)
    server.add_tool(tools.delete_order, title="Delete an order", annotations=DELETES)
    return server


def main() -> None:
    """Serve the shop on stdin and stdout until stdin is closed."""
    named = os.environ.get("AGENTBOX_SHOP_DATABASE")
    with tempfile.TemporaryDirectory(prefix="agentbox-shop-", ignore_cleanup_errors=True) as directory:
        build_server(Shop(Path(named).resolve() if named else Path(directory) / "shop.sqlite")).run("stdio")


if __name__ == "__main__":
    main()
