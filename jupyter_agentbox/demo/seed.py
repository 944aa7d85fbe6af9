"""The demo shop's tables and its first year, the same in every demo."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

SCHEMA = """
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category TEXT NOT NULL,
    price_cents INTEGER NOT NULL CHECK (price_cents > 0),
    stock INTEGER NOT NULL CHECK (stock >= 0)
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer TEXT NOT NULL,
    ordered_on TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'shipped', 'returned')),
    note TEXT NOT NULL DEFAULT ''
);
CREATE TABLE order_lines (
    order_id INTEGER NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    unit_cents INTEGER NOT NULL
);
CREATE INDEX order_lines_by_order ON order_lines (order_id);
"""

#: id, name, category, price in cents, stock
PRODUCTS = (
    (1, "Sencha", "tea", 1290, 84),
    (2, "Darjeeling First Flush", "tea", 1850, 31),
    (3, "Rooibos Orange", "tea", 890, 120),
    (4, "Earl Grey Blue Flower", "tea", 990, 7),
    (5, "Yirgacheffe", "coffee", 1490, 56),
    (6, "House Espresso", "coffee", 1190, 143),
    (7, "Decaf Huila", "coffee", 1390, 4),
    (8, "Stoneware Mug", "pottery", 1600, 38),
    (9, "Teapot, 0.8 l", "pottery", 4200, 12),
    (10, "Espresso Cup, set of 2", "pottery", 2250, 0),
)

CUSTOMERS = (
    "Ada Nilsen",
    "Bruno Costa",
    "Chidi Okafor",
    "Dagmar Weiss",
    "Emi Tanaka",
    "Farah Haddad",
    "Greta Lindqvist",
    "Hugo Martin",
    "Ines Ferreira",
    "Jonas Becker",
    "Keiko Mori",
    "Lars Jensen",
)

NOTES = ("", "", "", "", "gift wrap, please", "leave with the neighbor", "call before delivery")

YEAR = 2025
FIRST_ORDER_ID = 1001

#: Orders in each month of the year: quiet in summer, busy before the holidays.
ORDERS_PER_MONTH = (17, 15, 18, 16, 14, 12, 10, 11, 16, 20, 27, 34)


def fill(database: sqlite3.Connection) -> None:
    """Create the tables and one year of orders in an empty database."""
    database.executescript(SCHEMA)
    database.executemany("INSERT INTO products VALUES (?, ?, ?, ?, ?)", PRODUCTS)
    chance = random.Random(7)  # noqa: S311 - not a secret: the same shop every time
    for order_id, day in enumerate(_order_days(chance), start=FIRST_ORDER_ID):
        _add_order(database, chance, order_id, day)
    database.commit()


def _order_days(chance: random.Random) -> list[date]:
    return sorted(
        date(YEAR, month, 1) + timedelta(days=chance.randrange(28))
        for month, count in enumerate(ORDERS_PER_MONTH, start=1)
        for _ in range(count)
    )


def _add_order(database: sqlite3.Connection, chance: random.Random, order_id: int, day: date) -> None:
    status = "open" if day >= date(YEAR, 12, 20) else chance.choices(("shipped", "returned"), (19, 1))[0]
    database.execute(
        "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
        (order_id, chance.choice(CUSTOMERS), day.isoformat(), status, chance.choice(NOTES)),
    )
    database.executemany(
        "INSERT INTO order_lines VALUES (?, ?, ?, ?)",
        [
            (order_id, product_id, chance.choice((1, 1, 1, 2, 2, 3)), cents)
            for product_id, _, _, cents, _ in chance.sample(PRODUCTS, chance.choice((1, 1, 2, 2, 3)))
        ],
    )
