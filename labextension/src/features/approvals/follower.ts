/**
 * Scrolls to what comes next under a cell in which a person has just answered.
 *
 * Code that was allowed puts out what it puts out, and the next request of the same cell may come below the edge of the
 * window. Until the person does anything else, that request is brought into view; where none waits, the agent's answer is.
 */

/** The elements that come next, in document order. */
const WAITING = ".jp-AgentBox-output .jp-AgentBox-card[data-status='pending']";
const ANSWER = '.jp-AgentBox-message.jp-mod-final';

/** The events of a person who scrolls or navigates themselves. */
const OTHER_DEEDS = ['pointerdown', 'wheel', 'keydown', 'touchstart'] as const;

/** Follows one cell at a time. It lives as long as the page. */
export class Follower {
  constructor() {
    OTHER_DEEDS.forEach(deed => {
      window.addEventListener(deed, this._stop, {
        capture: true,
        passive: true
      });
    });
  }

  /** Follow what appears under the cell of a card that was answered. */
  follow(card: HTMLElement): void {
    this._stop();
    const cell = card.closest<HTMLElement>('.jp-Cell');
    if (!cell || typeof ResizeObserver === 'undefined') {
      return;
    }
    this._observer = new ResizeObserver(() => {
      reveal(cell);
    });
    this._observer.observe(cell);
  }

  private readonly _stop = (): void => {
    this._observer?.disconnect();
    this._observer = null;
  };

  private _observer: ResizeObserver | null = null;
}

/** Scroll to what comes next, or to its beginning if it is longer than the window. */
function reveal(cell: HTMLElement): void {
  const next = [WAITING, ANSWER]
    .map(found => [...cell.querySelectorAll<HTMLElement>(found)].pop())
    .find(Boolean);
  const isLong = (next?.offsetHeight ?? 0) > window.innerHeight * 0.7;
  next?.scrollIntoView({ block: isLong ? 'start' : 'nearest' });
}
