/**
 * A layout for one card, which jsdom has not: it has a place in the window, and lies on top unless a test covers it.
 */
import { act } from '@testing-library/react';

import { GUARD_TIME } from '../src/ui/guarded/guardTime';

/** Milliseconds in which a card has looked at all of its points, in steps. */
const LOOK = 10;

/** What lies over the page, if anything does. */
let cover: Element | null = null;

/** Give everything the same place: what is looked at is the last card of the page. Needs fake timers. */
export function layOut(): void {
  cover = null;
  for (const side of ['clientWidth', 'clientHeight']) {
    Object.defineProperty(document.documentElement, side, {
      value: 1000,
      configurable: true
    });
  }
  jest
    .spyOn(Element.prototype, 'getBoundingClientRect')
    .mockReturnValue({ left: 0, top: 0, right: 60, bottom: 40 } as DOMRect);
  document.elementFromPoint = () =>
    cover ?? [...document.querySelectorAll('.jp-AgentBox-card')].at(-1) ?? null;
}

/** Let the time pass in which a button on a card takes no gesture, with somebody at the page. */
export function waitForButtons(milliseconds = GUARD_TIME): void {
  window.dispatchEvent(new MouseEvent('pointermove'));
  for (const time of [LOOK, milliseconds]) {
    act(() => {
      jest.advanceTimersByTime(time);
    });
  }
}

/** Lay something over the page, or take it away, and let the card see it. */
export function setCovered(isCovered: boolean): void {
  cover = isCovered ? document.body : null;
  waitForButtons(LOOK_INTERVAL);
}

/** Milliseconds in which a card has looked once more. */
const LOOK_INTERVAL = 250;
