"""The demo shop: everything that reads and writes its SQLite file."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

from jupyter_agentbox.demo.records import (
    Category,
    Deletion,
    MonthlySales,
    NewLine,
    Order,
    OrderLine,
    OrderStatus,
    OrderSummary,
    Product,
    Table,
)
from jupyter_agentbox.demo.seed import fill

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date
    from pathlib import Path

#: What a query may do: read this database and call functions, but not ATTACH or PRAGMA.
READ_ACTIONS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)

#: The longest time that a query may take, in seconds.
QUERY_SECONDS = 5.0

_SUMMARY = """
SELECT o.id, o.customer, o.ordered_on, o.status, o.note, SUM(l.quantity * l.unit_cents) AS cents
FROM orders o JOIN order_lines l ON l.order_id = o.id
"""


class ShopError(Exception):
    """The shop cannot do what was asked. The message says why."""


class Shop:
    """The shop in one SQLite file, which is created and filled if there is none.

    Parameters
    ----------
    path : Path
        The SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            with closing(self._connect()) as database:
                fill(database)

    def products(self, category: Category | None = None, *, max_stock: int | None = None) -> list[Product]:
        """Return the products of one category, or all, whose stock is not above a limit."""
        rows = self._read(
            "SELECT * FROM products WHERE (:category IS NULL OR category = :category)"
            " AND (:max_stock IS NULL OR stock <= :max_stock) ORDER BY id",
            {"category": category, "max_stock": max_stock},
        )
        return [_product(row) for row in rows]

    def orders(self, status: OrderStatus | None, customer: str | None, limit: int) -> list[OrderSummary]:
        """Return the newest orders; `customer` matches any part of a name."""
        rows = self._read(
            _SUMMARY + "WHERE (:status IS NULL OR o.status = :status)"
            " AND (:customer IS NULL OR instr(lower(o.customer), lower(:customer)) > 0)"
            " GROUP BY o.id ORDER BY o.ordered_on DESC, o.id DESC LIMIT :limit",
            {"status": status, "customer": customer, "limit": limit},
        )
        return [
            OrderSummary(
                id=row["id"],
                customer=row["customer"],
                ordered_on=row["ordered_on"],
                status=row["status"],
                total=row["cents"] / 100,
            )
            for row in rows
        ]

    def order(self, order_id: int) -> Order:
        """Return one order with its lines.

        Raises
        ------
        ShopError
            If there is no such order.
        """
        rows = self._read(_SUMMARY + "WHERE o.id = :id GROUP BY o.id", {"id": order_id}) if _is_id(order_id) else []
        if not rows:
            raise ShopError(f"There is no order {order_id}.")
        lines = self._read(
            "SELECT p.name, l.quantity, l.unit_cents FROM order_lines l JOIN products p ON p.id = l.product_id"
            " WHERE l.order_id = :id",
            {"id": order_id},
        )
        row = rows[0]
        return Order(
            id=row["id"],
            customer=row["customer"],
            ordered_on=row["ordered_on"],
            status=row["status"],
            note=row["note"],
            total=row["cents"] / 100,
            lines=[
                OrderLine(product=line["name"], quantity=line["quantity"], unit_price=line["unit_cents"] / 100)
                for line in lines
            ],
        )

    def monthly_sales(self, year: int) -> list[MonthlySales]:
        """Return the sales of each month of a year that had any."""
        rows = self._read(
            "SELECT substr(o.ordered_on, 1, 7) AS month, COUNT(DISTINCT o.id) AS orders,"
            " SUM(l.quantity * l.unit_cents) AS cents FROM orders o JOIN order_lines l ON l.order_id = o.id"
            " WHERE o.status <> 'returned' AND substr(o.ordered_on, 1, 4) = :year GROUP BY month ORDER BY month",
            {"year": f"{year:04}"},
        )
        return [MonthlySales(month=row["month"], orders=row["orders"], revenue=row["cents"] / 100) for row in rows]

    def add_order(self, customer: str, lines: Sequence[NewLine], note: str, today: date) -> Order:
        """Place an order and take its products from the stock.

        Raises
        ------
        ShopError
            If a product is unknown or there is not enough of it.
        """
        with closing(self._connect()) as database, database:
            cursor = database.execute(
                "INSERT INTO orders (customer, ordered_on, status, note) VALUES (?, ?, 'open', ?)",
                (customer, today.isoformat(), note),
            )
            order_id = cursor.lastrowid
            if order_id is None:
                raise ShopError("The order was not stored.")
            for line in lines:
                _take_from_stock(database, order_id, line)
        return self.order(order_id)

    def set_price(self, product_id: int, cents: int) -> Product:
        """Change a product's price.

        Raises
        ------
        ShopError
            If the price is less than a cent, or there is no such product.
        """
        if cents < 1:
            raise ShopError("The lowest price is 0.01 euros.")
        return self._change_product("UPDATE products SET price_cents = :value WHERE id = :id", product_id, cents)

    def restock(self, product_id: int, quantity: int) -> Product:
        """Add pieces of a product to the stock."""
        return self._change_product("UPDATE products SET stock = stock + :value WHERE id = :id", product_id, quantity)

    def delete_order(self, order_id: int) -> Deletion:
        """Delete an order and its lines. This cannot be undone."""
        order = self.order(order_id)
        with closing(self._connect()) as database, database:
            database.execute("DELETE FROM orders WHERE id = ?", (order_id,))
        return Deletion(deleted_order=order_id, revenue_lost=order.total)

    def query(self, sql: str, limit: int) -> Table:
        """Run one SELECT on a connection that can only read.

        Raises
        ------
        ShopError
            If it is not a SELECT, is invalid, or takes longer than `QUERY_SECONDS`.
        """
        deadline = time.monotonic() + QUERY_SECONDS
        with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as database:
            database.set_authorizer(_allow_reading)
            database.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
            try:
                cursor = database.execute(sql)
                rows = cursor.fetchmany(limit + 1)
            except (sqlite3.Error, sqlite3.Warning) as error:
                raise ShopError(f"The query did not run: {error}.") from error
        return Table(
            columns=[column[0] for column in cursor.description or ()],
            rows=[[f"{len(cell)} bytes" if isinstance(cell, bytes) else cell for cell in row] for row in rows[:limit]],
            truncated=len(rows) > limit,
        )

    def _change_product(self, sql: str, product_id: int, value: int) -> Product:
        if not _is_id(product_id):
            raise ShopError(f"There is no product {product_id}.")
        with closing(self._connect()) as database, database:
            database.execute(sql, {"id": product_id, "value": value})
            row = database.execute("SELECT * FROM products WHERE id = ?", (product_id,)).fetchone()
        if row is None:
            raise ShopError(f"There is no product {product_id}.")
        return _product(row)

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path)
        database.row_factory = sqlite3.Row
        database.execute("PRAGMA foreign_keys = ON")
        return database

    def _read(self, sql: str, values: dict[str, str | int | None]) -> list[sqlite3.Row]:
        with closing(self._connect()) as database:
            return database.execute(sql, values).fetchall()


def _is_id(number: int) -> bool:
    """Whether the number can be an id in SQLite, which has 64 bits for it."""
    return 0 < number < 2**63


def _product(row: sqlite3.Row) -> Product:
    return Product(
        id=row["id"],
        name=row["name"],
        category=row["category"],
        price=row["price_cents"] / 100,
        stock=row["stock"],
    )


def _take_from_stock(database: sqlite3.Connection, order_id: int, line: NewLine) -> None:
    is_id = _is_id(line.product_id)
    row = database.execute("SELECT * FROM products WHERE id = ?", (line.product_id if is_id else 0,)).fetchone()
    if row is None:
        raise ShopError(f"There is no product {line.product_id}.")
    if row["stock"] < line.quantity:
        raise ShopError(f"Only {row['stock']} of {row['name']} in stock, {line.quantity} were ordered.")
    database.execute("UPDATE products SET stock = stock - ? WHERE id = ?", (line.quantity, line.product_id))
    database.execute(
        "INSERT INTO order_lines VALUES (?, ?, ?, ?)", (order_id, line.product_id, line.quantity, row["price_cents"])
    )


def _allow_reading(action: int, *_details: str | None) -> int:
    return sqlite3.SQLITE_OK if action in READ_ACTIONS else sqlite3.SQLITE_DENY
