/**
 * Keeps a card in view while the page around it is still being laid out.
 *
 * After a reload, what is above a card gets its height late, and so does the card itself; what JupyterLab opens meanwhile takes
 * the focus. This scrolls to the card, and gives it the focus back, until the card has stayed in its place for a while or the
 * person does something.
 */
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

import { DEEDS, followDeed } from './keyGuard';

/** Milliseconds between two checks. */
const INTERVAL = 100;

/** Milliseconds after which a card that has not moved stays where it is. */
const CALM = 3000;

/** Milliseconds after which the page is left alone in any case. */
const LONGEST = 10_000;

/** Scroll to a card now, and again when it moves. If `keepsFocus`, it also gets the focus back that the page takes from it. */
export function stayInView(card: HTMLElement, keepsFocus = false): IDisposable {
  const following = keepsFocus ? followDeed() : null;
  let place = '';
  let calm = 0;
  let time = 0;
  const check = (): void => {
    const { top, height } = card.getBoundingClientRect();
    const now = `${Math.round(top)} ${Math.round(height)}`;
    calm = now === place ? calm + INTERVAL : 0;
    if (now !== place) {
      card.scrollIntoView({ block: 'nearest' });
      const moved = card.getBoundingClientRect();
      place = `${Math.round(moved.top)} ${Math.round(moved.height)}`;
    }
    time += INTERVAL;
    if (!card.isConnected || calm >= CALM || time >= LONGEST) {
      ending.dispose();
    }
  };
  // What takes the focus is not done yet when it is heard of.
  const takeBack = (): void => {
    queueMicrotask(() => {
      if (!ending.isDisposed && isTaken(card)) {
        card.focus({ preventScroll: true });
      }
    });
  };
  const ending = new DisposableDelegate(() => {
    window.clearInterval(timer);
    window.removeEventListener('focusin', takeBack);
    following?.dispose();
    DEEDS.forEach(deed => {
      window.removeEventListener(deed, stop, true);
    });
  });
  const stop = (): void => {
    ending.dispose();
  };
  const timer = window.setInterval(check, INTERVAL);
  DEEDS.forEach(deed => {
    window.addEventListener(deed, stop, { capture: true, passive: true });
  });
  if (keepsFocus) {
    window.addEventListener('focusin', takeBack);
  }
  check();
  return ending;
}

/** Whether the page has moved the focus from a card to nothing, or to a cell or the whole of its notebook, as when it is opened. */
function isTaken(card: HTMLElement): boolean {
  const { activeElement } = document;
  const notebook = card.closest('.jp-Notebook');
  return (
    card.isConnected &&
    (activeElement === document.body ||
      activeElement === notebook ||
      Boolean(
        activeElement?.matches('.jp-Cell') && notebook?.contains(activeElement)
      ))
  );
}
