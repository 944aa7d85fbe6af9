"""The types of the arguments and results of the demo shop's tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

Category = Literal["tea", "coffee", "pottery"]
OrderStatus = Literal["open", "shipped", "returned"]
Cell = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class Product:
    """Something the shop sells. The price is in euros."""

    id: int
    name: str
    category: Category
    price: float
    stock: int


@dataclass(frozen=True, kw_only=True)
class NewLine:
    """One product in an order that is to be placed."""

    product_id: Annotated[int, Field(description="A product's id, as list_products gives it")]
    quantity: Annotated[int, Field(ge=1, le=100, description="How many of it")] = 1


@dataclass(frozen=True, kw_only=True)
class OrderLine:
    """One product in an order, at the price it had then, in euros."""

    product: str
    quantity: int
    unit_price: float


@dataclass(frozen=True, kw_only=True)
class OrderSummary:
    """An order without its lines. The total is in euros."""

    id: int
    customer: str
    ordered_on: str
    status: OrderStatus
    total: float


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order with all its lines. The total is in euros."""

    id: int
    customer: str
    ordered_on: str
    status: OrderStatus
    note: str
    total: float
    lines: list[OrderLine]


@dataclass(frozen=True, kw_only=True)
class MonthlySales:
    """What was sold in one month (``2025-03``), returns not counted. The revenue is in euros."""

    month: str
    orders: int
    revenue: float


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The expected revenue of a coming month, in euros, with a range."""

    month: str
    revenue: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of a query."""

    columns: list[str]
    rows: list[list[Cell]]
    truncated: bool


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """What was deleted, and the lost revenue in euros."""

    deleted_order: int
    revenue_lost: float
