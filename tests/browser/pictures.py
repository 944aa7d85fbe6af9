"""Whether what a picture is meant to show can be seen on the page."""

from __future__ import annotations

from playwright.sync_api import Locator

#: Where a part is looked at, each way, and how far from its edges: rounded corners and borders are not it.
_POINTS = 12
_INSET = 3

_FAULTS = """(part, [points, inset]) => {
  const name = node => node ? `<${node.localName} class="${node.getAttribute('class') ?? ''}">` : 'nothing';
  const { left, top, right, bottom } = part.getBoundingClientRect();
  if (right - left < 1 || bottom - top < 1) return ['it takes no room'];
  const { clientWidth, clientHeight } = document.documentElement;
  if (left < 0 || top < 0 || right > clientWidth || bottom > clientHeight) {
    const sides = [left, top, right, bottom].map(Math.round).join(', ');
    return [`it is cut off: its sides are ${sides}, and the window is ${clientWidth} by ${clientHeight}`];
  }
  const between = (low, high, step) => {
    const margin = Math.min(inset, (high - low) / 2);
    return low + margin + (high - low - 2 * margin) * step / (points - 1);
  };
  const found = new Set();
  for (let row = 0; row < points; row++) {
    for (let column = 0; column < points; column++) {
      const [x, y] = [between(left, right, column), between(top, bottom, row)];
      const shown = document.elementFromPoint(x, y);
      if (part.contains(shown)) continue;
      found.add(shown?.contains(part) ? `${name(shown)} does not show all of it` : `${name(shown)} covers it`);
    }
  }
  return [...found];
}"""


#: Ends when a part has come to rest: a notification slides into the page.
_REST = """part => Promise.allSettled(
  document.getAnimations()
    .filter(one => one.effect?.target?.contains(part) && one.effect.getComputedTiming().endTime !== Infinity)
    .map(one => one.finished)
)"""


def faults(part: Locator) -> list[str]:
    """Return why a part of a page cannot be seen whole, a line each: it is cut off, or something covers it.

    A part that is moved into its place is looked at when it is there.
    """
    part.evaluate(_REST)
    return [str(each) for each in part.evaluate(_FAULTS, [_POINTS, _INSET])]
