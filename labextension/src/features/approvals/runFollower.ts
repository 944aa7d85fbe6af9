/**
 * Scrolls to the first request of a cell that a person has just run.
 *
 * The card may come below the edge of the window. Until the person does anything else, they are looking for what their cell
 * does, so the card is brought into view. Of what a program runs, and after any other action, the page leaves its place.
 */
import { DEEDS, isWriting } from '../../ui/guarded/keyGuard';
import { scrollTo } from './follower';

/** The first request of a cell that waits. */
const WAITING = ".jp-AgentBox-output .jp-AgentBox-card[data-status='pending']";

/** Milliseconds after a person's action in which a cell that begins to run was run by them. */
const AT_ONCE = 1000;

/** Follows the cells of one action at a time. It lives as long as the page. */
export class RunFollower {
  constructor() {
    DEEDS.forEach(deed => {
      window.addEventListener(deed, this._onDeed, {
        capture: true,
        passive: true
      });
    });
  }

  /** Follow a cell that begins to run. */
  follow(cell: HTMLElement): void {
    if (performance.now() - this._actedAt < AT_ONCE) {
      this._observer?.observe(cell);
    }
  }

  private readonly _onDeed = (event: Event): void => {
    this._observer?.disconnect();
    const isTyping = event instanceof KeyboardEvent && isWriting(event);
    // What runs while a person types was run by a program.
    this._actedAt =
      event.isTrusted && !isTyping ? performance.now() : -Infinity;
  };

  private _actedAt = -Infinity;
  private readonly _observer =
    typeof ResizeObserver === 'undefined'
      ? null
      : new ResizeObserver(entries => {
          const card = entries
            .map(({ target }) => target.querySelector<HTMLElement>(WAITING))
            .find(Boolean);
          if (card) {
            scrollTo(card);
          }
        });
}
