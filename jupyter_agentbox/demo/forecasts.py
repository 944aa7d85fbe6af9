"""A simple forecast: the shape of the last year at the level of its last quarter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_agentbox.demo.database import ShopError
from jupyter_agentbox.demo.records import Forecast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jupyter_agentbox.demo.records import MonthlySales

MONTHS = 12

#: Half the width of the range around a forecast, relative to the forecast. It grows with every month ahead.
SPREAD = 0.08


def forecast_months(sales: Sequence[MonthlySales], months: int) -> list[Forecast]:
    """Forecast the months after a full year of sales.

    Parameters
    ----------
    sales : sequence of MonthlySales
        Twelve months in order.
    months : int
        How many months ahead, at most twelve.

    Raises
    ------
    ShopError
        If a month of the year has no sales.
    """
    if len(sales) < MONTHS:
        raise ShopError("A forecast needs sales in every month of the year.")
    level = 1 + 0.1 * (sum(month.revenue for month in sales[-3:]) / sum(month.revenue for month in sales) - 0.25)
    year = int(sales[-1].month[:4]) + 1
    return [
        Forecast(
            month=f"{year}-{ahead:02}",
            revenue=round(sales[ahead - 1].revenue * level, 2),
            low=round(sales[ahead - 1].revenue * level * (1 - SPREAD * ahead**0.5), 2),
            high=round(sales[ahead - 1].revenue * level * (1 + SPREAD * ahead**0.5), 2),
        )
        for ahead in range(1, min(months, MONTHS) + 1)
    ]
