/**
 * Leads to what comes next under a cell in which a person has just answered.
 *
 * Code that was allowed puts out what it puts out, and the next request of the same cell may come below the edge of the
 * window. Until the person does anything else, that request is brought into view; where none waits, the agent's answer is.
 * After an answer by key, a request that comes soon gets the focus, too, so that each call of a loop takes one key; such a
 * key that comes too early, or after the last request, does not reach the notebook, in which it would mean something else.
 */
import type { IDisposable } from '@lumino/disposable';

import {
  DEEDS,
  acceptEarlyLetter,
  followAnswer,
  followDeed,
  letterOf,
  takesText
} from '../../ui/guarded/keyGuard';

/** The letters that decide a request, or lead to another. */
const LETTERS = ['A', 'E', 'R', 'J', 'K'];

/** The elements that come next, in document order. */
const WAITING = ".jp-AgentBox-output .jp-AgentBox-card[data-status='pending']";
const ANSWER = '.jp-AgentBox-message.jp-mod-final';

/** Milliseconds after an answer by key in which the next request gets the focus. */
const SOON = 5000;
/** Milliseconds after it in which a letter for the next request is kept from the notebook. */
const EARLY = 1500;
/** Milliseconds after an answer by letter in which a letter too many is kept from the notebook, if there is no next request. */
const LATE = 1000;

/** Follows one cell at a time. It lives as long as the page. */
export class Follower {
  constructor() {
    DEEDS.forEach(deed => {
      window.addEventListener(deed, this._onDeed, {
        capture: true,
        passive: deed !== 'keydown'
      });
    });
  }

  /** Follow what appears under the cell of a card that was answered. The panel's list has no cell. */
  follow(card: HTMLElement): void {
    this._stop();
    this._answeredAt = this._isByKey ? performance.now() : -Infinity;
    this._answer = this._letter;
    const cell = card.closest<HTMLElement>('.jp-Cell');
    if (!cell || typeof ResizeObserver === 'undefined') {
      return;
    }
    this._cell = cell;
    this._following = followAnswer();
    this._observer = new ResizeObserver(() => {
      const next = reveal(cell);
      const isSoon = this._sinceAnswer < SOON;
      if (next?.matches(WAITING) && isSoon && isCommandMode()) {
        next.focus({ preventScroll: true });
      }
    });
    this._observer.observe(cell);
  }

  private readonly _onDeed = (event: Event): void => {
    const isKey = event instanceof KeyboardEvent;
    if (isKey && !event.isTrusted) {
      return; // a script's key must not make a click an answer by key, after which the next request gets the focus
    }
    const letter = isKey ? letterOf(event) : '';
    if (isKey && (this._isTooEarly(letter) || this._isTooMany(letter))) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (this._cell) {
        acceptEarlyLetter();
        this._followDeed();
      }
      return;
    }
    this._isByKey = isKey;
    this._letter = letter;
    this._stop();
  };

  /** Whether a letter is meant for a request that has not come yet. */
  private _isTooEarly(letter: string): boolean {
    return (
      this._cell !== null &&
      this._sinceAnswer < EARLY &&
      LETTERS.includes(letter) &&
      isRunning(this._cell) &&
      isCommandMode()
    );
  }

  /**
   * Whether a letter belongs to the card that was answered by letter, and comes to the notebook instead: any letter where
   * it would be a command, and only the same one where it would be text.
   */
  private _isTooMany(letter: string): boolean {
    return (
      LETTERS.includes(this._answer) &&
      this._sinceAnswer < LATE &&
      ((LETTERS.includes(letter) && isCommandTarget()) ||
        (letter === this._answer && isEditor()))
    );
  }

  private get _sinceAnswer(): number {
    return performance.now() - this._answeredAt;
  }

  /** Let the focus follow the key that was pressed. */
  private _followDeed(): void {
    this._following?.dispose();
    this._following = followDeed();
  }

  private _stop(): void {
    this._observer?.disconnect();
    this._observer = null;
    this._answer = '';
    this._cell = null;
    this._following?.dispose();
    this._following = null;
  }

  /** The letter of the last answer, until the person does something else. */
  private _answer = '';
  private _answeredAt = -Infinity;
  private _cell: HTMLElement | null = null;
  private _following: IDisposable | null = null;
  private _isByKey = false;
  /** The letter of the last key; empty after another key or deed. */
  private _letter = '';
  private _observer: ResizeObserver | null = null;
}

/** Scroll to what comes next. */
function reveal(cell: HTMLElement): HTMLElement | undefined {
  const next = [WAITING, ANSWER]
    .map(found => [...cell.querySelectorAll<HTMLElement>(found)].pop())
    .find(Boolean);
  if (next) {
    scrollTo(next);
  }
  return next;
}

/** Scroll to an element, or to its beginning if it is about as long as the window. */
export function scrollTo(element: HTMLElement): void {
  const isLong = element.offsetHeight > window.innerHeight * 0.7;
  element.scrollIntoView({ block: isLong ? 'start' : 'nearest' });
}

/** Whether a cell's code runs. */
function isRunning(cell: HTMLElement): boolean {
  return /\*/.test(cell.querySelector('.jp-InputPrompt')?.textContent ?? '');
}

/** Whether the focus is in a notebook, where nothing is typed and no card has it. */
function isCommandMode(): boolean {
  const { activeElement } = document;
  return Boolean(
    activeElement?.closest('.jp-Notebook.jp-mod-commandMode') &&
    !activeElement.closest('.jp-AgentBox-card')
  );
}

/** Whether a letter would be a command of the notebook, as it would be on a card that was answered. */
function isCommandTarget(): boolean {
  const { activeElement } = document;
  return Boolean(
    activeElement?.closest('.jp-Notebook.jp-mod-commandMode') &&
    !activeElement.closest(".jp-AgentBox-card[data-status='pending']") &&
    !takesText(activeElement)
  );
}

/** Whether a letter would be text in a cell or a console. */
function isEditor(): boolean {
  return (
    document.activeElement?.matches(
      '.jp-Notebook .cm-content, .jp-CodeConsole .cm-content'
    ) ?? false
  );
}
