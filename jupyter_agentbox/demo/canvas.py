"""A bitmap with smooth lines, rounded boxes and a stroked font, written as PNG with the standard library only.

The color of a pixel depends on the distance of its center to a shape's edge; within half a pixel it fades, so that
lines and letters look smooth.
"""

from __future__ import annotations

import struct
import zlib
from math import ceil, floor, hypot
from typing import TYPE_CHECKING

from jupyter_agentbox.demo.font import ADVANCE, CAP_HEIGHT, GLYPHS

if TYPE_CHECKING:
    from collections.abc import Callable

Color = tuple[int, int, int]


class Canvas:
    """A bitmap of one background color to draw on. Lengths are pixels, from the top left corner."""

    def __init__(self, width: int, height: int, background: Color) -> None:
        self.width = width
        self.height = height
        self._rows = [bytearray(bytes(background) * width) for _ in range(height)]

    def line(self, start: tuple[float, float], end: tuple[float, float], color: Color, thickness: float) -> None:
        """Draw a line with round ends."""
        (x0, y0), (x1, y1) = start, end
        dx, dy = x1 - x0, y1 - y0
        length_squared = dx * dx + dy * dy or 1.0

        def distance(x: float, y: float) -> float:
            along = min(1.0, max(0.0, ((x - x0) * dx + (y - y0) * dy) / length_squared))
            return hypot(x - x0 - along * dx, y - y0 - along * dy) - thickness / 2

        margin = thickness / 2 + 1
        self._fill(
            (min(x0, x1) - margin, min(y0, y1) - margin), (max(x0, x1) + margin, max(y0, y1) + margin), distance, color
        )

    def box(
        self, top_left: tuple[float, float], bottom_right: tuple[float, float], color: Color, radius: float
    ) -> None:
        """Draw a filled box whose upper corners are round."""
        (left, top), (right, bottom) = top_left, bottom_right
        radius = max(0.0, min(radius, (right - left) / 2, bottom - top))

        def distance(x: float, y: float) -> float:
            sides = max(left - x, x - right, top - y, y - bottom)
            if y < top + radius and not left + radius <= x <= right - radius:
                return hypot(x - min(max(x, left + radius), right - radius), y - top - radius) - radius
            return sides

        self._fill((left - 1, top - 1), (right + 1, bottom + 1), distance, color)

    def text(self, position: tuple[float, float], text: str, color: Color, height: float, *, align: float = 0) -> None:
        """Write text on a base line. `align` is the share of the text that is left of the position, from 0 to 1."""
        scale = height / CAP_HEIGHT
        x = position[0] - align * (sum(_advance(letter) for letter in text) - 1) * scale
        for letter in text:
            for stroke in _glyph(letter):
                points = [(x + px * scale, position[1] - (CAP_HEIGHT - py) * scale) for px, py in stroke]
                for start, end in zip(points, points[1:] or points, strict=False):
                    self.line(start, end, color, max(1.4, height * 0.13))
            x += _advance(letter) * scale

    def png(self) -> bytes:
        """Return the bitmap as a PNG file."""
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + row for row in self._rows), 9)
        chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + chunks

    def _fill(
        self,
        top_left: tuple[float, float],
        bottom_right: tuple[float, float],
        distance: Callable[[float, float], float],
        color: Color,
    ) -> None:
        for y in range(max(0, floor(top_left[1])), min(self.height, ceil(bottom_right[1]))):
            row = self._rows[y]
            for x in range(max(0, floor(top_left[0])), min(self.width, ceil(bottom_right[0]))):
                cover = min(1.0, 0.5 - distance(x + 0.5, y + 0.5))
                if cover > 0:
                    for channel in range(3):
                        at = 3 * x + channel
                        row[at] = round(row[at] + (color[channel] - row[at]) * cover)


def _glyph(letter: str) -> tuple[tuple[tuple[int, int], ...], ...]:
    return GLYPHS.get(letter.upper(), ())


def _advance(letter: str) -> float:
    strokes = _glyph(letter)
    return max(x for stroke in strokes for x, _ in stroke) + 2.0 if strokes else ADVANCE / 2


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
