"""A font of strokes for the demo's chart: capitals, digits and a few signs.

A glyph is a list of strokes, separated by spaces. A stroke is a sequence of points with two digits each: x from the
left and y from the top. A capital is four units wide and six high.
"""

from __future__ import annotations

CAP_HEIGHT = 6
ADVANCE = 5

_STROKES = {
    "A": "062046 1434",
    "B": "00063645443303 3342413000",
    "C": "41301001051636 3645",
    "D": "00062644422000",
    "E": "40000646 0333",
    "F": "400006 0333",
    "G": "41301001051636454323",
    "H": "0006 4046 0343",
    "I": "0006",
    "J": "4045361605",
    "K": "0006 400346",
    "L": "000646",
    "M": "0600244046",
    "N": "06004640",
    "O": "103041453616050110",
    "P": "06003041423303",
    "Q": "103041453616050110 2446",
    "R": "06003041423303 2346",
    "S": "4130100102134445361605",
    "T": "0040 2026",
    "U": "000516364540",
    "V": "002640",
    "W": "0016223640",
    "X": "0046 4006",
    "Y": "002340 2326",
    "Z": "00400646",
    "0": "103041453616050110",
    "1": "012026",
    "2": "0110304142060646",
    "3": "01103041423313 334445361605",
    "4": "36300444",
    "5": "400003334445361605",
    "6": "41301001051636454433130405",
    "7": "00402226",
    "8": "133342413010010213 13040516364544 4433",
    "9": "05163645413010010213334243",
    ".": "06",
    ",": "1607",
    "-": "0333",
    "%": "4006 0101 4545",
}


def _points(stroke: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(stroke[at]), int(stroke[at + 1])) for at in range(0, len(stroke) - 1, 2))


#: Letter -> strokes -> points.
GLYPHS = {letter: tuple(_points(stroke) for stroke in strokes.split()) for letter, strokes in _STROKES.items()}
