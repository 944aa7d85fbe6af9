"""The demo script's steps for each question that it can answer.

A story is a generator: it yields function calls one by one, receives the result of each, and returns the answer.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from jupyter_agentbox.demo.turn import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function call of the script, and the sentence before it.

    Parameters
    ----------
    say : str
        A sentence for the person.
    name : str
        The function's name.
    arguments : dict
        Its arguments.
    """

    say: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


Story: TypeAlias = Generator[Call, Outcome, str]

READ: Final = """\
from jupyter_agentbox import tools

orders = tools.shop.list_orders(limit=500)
orders[0]"""

#: This code fails, because the day of an order is text.
OCTOBER: Final = """\
october = [order for order in orders if order.ordered_on.month == 10 and order.status != "returned"]
len(october)"""

SOLD: Final = """\
october = [order for order in orders if order.ordered_on.startswith("2025-10") and order.status != "returned"]
print(len(october), "orders in October")

sold = tools.shop.query(sql=\"\"\"
    SELECT p.id, p.name, p.price_cents, SUM(l.quantity) AS pieces
    FROM order_lines l JOIN orders o ON o.id = l.order_id JOIN products p ON p.id = l.product_id
    WHERE o.ordered_on LIKE '2025-10-%' AND o.status <> 'returned'
    GROUP BY p.id ORDER BY pieces DESC, p.id
\"\"\").rows

for product_id, name, cents, pieces in sold:
    print(f"{pieces:>3} × {name} (product {product_id}), {cents / 100:.2f} €")"""

PLOT: Final = """\
import matplotlib.pyplot as plt

names = [name for _, name, _, _ in sold]
pieces = [pieces for *_, pieces in sold]

plt.figure(figsize=(8, 3.6))
plt.barh(names, pieces, color=["#f37726"] + ["#4285be"] * (len(sold) - 1))
plt.gca().invert_yaxis()
plt.title("Pieces sold in October 2025")
plt.tight_layout()
plt.show()"""

#: Code for kernels without matplotlib.
BARS: Final = """\
for _, name, _, pieces in sold:
    print(f"{name:<24} {'█' * pieces} {pieces}")"""

OPEN_OF_ORDERS: Final = 'waiting = [order for order in orders if order.status == "open"]'
OPEN_OF_SHOP: Final = """\
from jupyter_agentbox import tools

waiting = tools.shop.list_orders(status="open", limit=500)"""
SHOW_WAITING: Final = """\
for order in sorted(waiting, key=lambda order: (order.ordered_on, order.id)):
    print(f"{order.ordered_on}  order {order.id}  {order.customer:<16} {order.total:8.2f} €")"""

_SOLD: Final = re.compile(r"^ *(\d+) × (.+) \(product (\d+)\), ([\d.]+) €$", re.MULTILINE)
_WAITING: Final = re.compile(r"^(\S+)  order (\d+)  (.+?) +([\d.]+) €$", re.MULTILINE)
_PRICE: Final = re.compile(r"\bprice=([\d.]+)")
_ORDERS: Final = re.compile(r"^\W*orders\b", re.MULTILINE)


def best_sellers() -> Story:
    """Find the best-selling products, plot them, and raise a price if the person allows it."""
    read = yield _run("First I read the orders. They come from the shop, so you are asked about that as well.", READ)
    if not read.is_good:
        return _cannot("Without the orders I cannot say what sold best.", read)
    filtered = yield _run("Now I pick the orders of October.", OCTOBER)
    listed = yield _run(f"{_after_filter(filtered)} Then I ask the shop how many pieces of each product that is.", SOLD)
    products = [(name, int(pieces), int(id_), float(price)) for pieces, name, id_, price in _SOLD.findall(listed.text)]
    if not listed.is_good or not products:
        return _cannot("I do not know what was sold in October.", listed)
    plotted = yield _run("That is what I need. I plot it.", PLOT)
    if plotted.error == "ModuleNotFoundError":
        plotted = yield _run("This kernel has no matplotlib. I draw the bars as text.", BARS)
    name, pieces, product_id, price = products[0]
    said = "" if plotted.is_good else "Then without a plot. "
    changed = yield _run(
        f"{said}**{name}** sold best. You asked for 5 % more: {price:.2f} € becomes {price * 1.05:.2f} €. "
        "This changes the shop.",
        f"tools.shop.set_price(product_id={product_id}, price={price * 1.05:.2f})",
    )
    rows = "\n".join(f"| {name} | {pieces} | {price:.2f} € |" for name, pieces, _, price in products[:3])
    return (
        f"**{name}** sold best in October: {pieces} pieces.\n\n"
        f"| product | pieces | price then |\n|---|---:|---:|\n{rows}\n\n"
        f"{_about_price(name, price, changed)}\n\n"
        "`orders`, `october` and `sold` are variables of your notebook now."
    )


def open_orders() -> Story:
    """List the open orders, from the notebook's variables if they are there."""
    variables = yield Call(say="I look at which variables there are.", name="list_variables")
    if _ORDERS.search(variables.text):
        say, source = "You have `orders` already, so I need not ask the shop.", OPEN_OF_ORDERS
    else:
        say, source = "I ask the shop for the orders that are open.", OPEN_OF_SHOP
    listed = yield _run(say, f"{source}\n{SHOW_WAITING}")
    if not listed.is_good:
        return _cannot("I do not know which orders are open.", listed)
    found = _WAITING.findall(listed.text)
    if not found:
        return "No order is open."
    day, order_id, customer, _ = found[0]
    worth = sum(float(total) for *_, total in found)
    count = "One order is open" if len(found) == 1 else f"{len(found)} orders are open"
    return (
        f"{count}, worth {worth:,.2f} €. **{customer}** has waited longest: order {order_id}, since {day}.\n\n"
        "The variable `waiting` has them."
    )


def _run(say: str, code: str) -> Call:
    return Call(say=say, name="run_code", arguments={"code": code})


def _after_filter(filtered: Outcome) -> str:
    if filtered.error == "AttributeError":
        return (
            f"My mistake: `{filtered.message}`. The day of an order is text such as `2025-10-14`. I compare it as text."
        )
    if filtered.is_refused:
        return f"You refused that{_because(filtered)}. I try it another way: I compare the days as text."
    if filtered.error:
        return f"That ended with `{filtered.error}`. I compare the days as text."
    return "That worked. To be sure, I compare the days as text, too."


def _about_price(name: str, price: float, changed: Outcome) -> str:
    if changed.is_refused:
        return f"The price stays at {price:.2f} €: the change was refused{_because(changed)}."
    if changed.error:
        return f"The price stays at {price:.2f} €: the change ended with `{changed.error}: {changed.message}`."
    found = _PRICE.search(changed.text)
    return f"{name} costs {found[1] if found else f'{price * 1.05:.2f}'} € now, up from {price:.2f} €."


def _cannot(what: str, outcome: Outcome) -> str:
    if outcome.is_refused:
        return f"{what} It was refused{_because(outcome)}. Run the cell again if you change your mind."
    if outcome.error:
        return (
            f"{what} The code ended with `{outcome.error}: {outcome.message}`, and a script knows no way around that."
        )
    return f"{what} The code printed something that this script cannot read."


def _because(outcome: Outcome) -> str:
    return f" (“{outcome.reason}”)" if outcome.reason else ""
