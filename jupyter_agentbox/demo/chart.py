"""The bar chart that the demo shop draws."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING

from jupyter_agentbox.demo.canvas import Canvas, Color

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 960, 480
LEFT, RIGHT, TOP, BOTTOM = 92, 28, 84, 60

PAPER: Color = (255, 255, 255)
INK: Color = (38, 50, 56)
SOFT_INK: Color = (96, 110, 118)
GRID: Color = (226, 231, 234)
BAR: Color = (66, 133, 190)
BEST: Color = (243, 119, 38)

MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def bar_chart(title: str, bars: Sequence[tuple[str, float]]) -> bytes:
    """Draw one bar for each month, the highest in another color.

    Parameters
    ----------
    title : str
        The text above the bars.
    bars : sequence of (str, float)
        A month as ``2025-03`` and its value, which is not negative.

    Returns
    -------
    bytes
        A PNG image, 960 by 480 pixels.
    """
    canvas = Canvas(WIDTH, HEIGHT, PAPER)
    canvas.text((LEFT, 46), title, INK, 20)
    highest = max((value for _, value in bars), default=0)
    step = _grid_step(highest)
    top = step * max(1, ceil(highest / step))
    for line in range(round(top / step) + 1):
        y = _y(line * step, top)
        canvas.line((LEFT, y), (WIDTH - RIGHT, y), GRID if line else SOFT_INK, 1.5)
        canvas.text((LEFT - 14, y + 6), f"{line * step:,.0f}", SOFT_INK, 12, align=1)
    slot = (WIDTH - LEFT - RIGHT) / max(1, len(bars))
    for index, (month, value) in enumerate(bars):
        middle = LEFT + (index + 0.5) * slot
        color = BEST if value == highest else BAR
        if value:
            box = (middle - slot * 0.32, _y(value, top)), (middle + slot * 0.32, _y(0, top) - 1)
            canvas.box(*box, color, radius=6)
        canvas.text((middle, _y(value, top) - 10), f"{value:,.0f}", INK, 11, align=0.5)
        canvas.text((middle, HEIGHT - BOTTOM + 30), MONTH_NAMES[int(month[5:]) - 1], SOFT_INK, 12, align=0.5)
    return canvas.png()


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def _grid_step(highest: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that there are three to six grid lines."""
    if highest <= 0:
        return 1
    power = 10 ** floor(log10(highest / 4))
    return float(max(1, next(power * factor for factor in (1, 2, 5, 10) if highest / (power * factor) <= 5)))
