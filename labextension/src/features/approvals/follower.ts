/**
 * Keeps in view what comes next under a cell in which a person has just answered.
 *
 * Code that was allowed puts out what it puts out, and the next request of the same cell may come below the edge of the
 * window. Until the person does anything else, that request is brought into view; where none waits, the agent's answer is.
 */

/** What comes next, the last of them last. */
const WAITING = ".jp-AgentBox-output .jp-AgentBox-card[data-status='pending']";
const ANSWER = '.jp-AgentBox-message.jp-mod-final';

/** What a person does who looks for themselves. */
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

  /** Follow what comes under the cell that a card is in, which was answered. */
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

/** Bring into view what comes next; of what is longer than the window, the beginning. */
function reveal(cell: HTMLElement): void {
  const next = [WAITING, ANSWER]
    .map(found => [...cell.querySelectorAll<HTMLElement>(found)].pop())
    .find(Boolean);
  const isLong = (next?.offsetHeight ?? 0) > window.innerHeight * 0.7;
  next?.scrollIntoView({ block: isLong ? 'start' : 'nearest' });
}
