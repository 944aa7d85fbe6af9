/**
 * One notification in the page for everything of one kind that is out of view. It is kept up to date, and removed when nothing
 * is out of view.
 *
 * Anything that covers a card disables the card's buttons. So while a card waits in the corner where notifications appear,
 * this one is only in JupyterLab's list of notifications; it appears when the corner is free.
 */
import { Notification } from '@jupyterlab/apputils';
import type { IDisposable } from '@lumino/disposable';

import { visibleHeight } from '../ui/guarded/visibleHeight';
import { isRenderedCard } from '../ui/guarded/renderedCards';

/** A card that its cell does not show within this many milliseconds counts as out of view. */
export const RENDER_TIME = 400;

/** Milliseconds between two checks of whether something came into view. */
export const LOOK_INTERVAL = 1000;

/** Milliseconds between two checks of whether it covers a card: less than the time after which a card reports that. */
export const AVOID_INTERVAL = 250;

/**
 * Milliseconds after an update in which JupyterLab may still be at work on it: it would show what was removed meanwhile
 * again, and for good.
 */
const UPDATE_TIME = 100;

/** Cards that a person may be about to answer. */
const WAITING_CARDS =
  '.jp-AgentBox-card[data-status="pending"], .jp-AgentBox-card.jp-mod-question';

/** The corner in which JupyterLab shows a notification of three lines: pixels from the right and lower edges. */
const CORNER = { width: 340, height: 170 };

/** What `StandingNotification` needs. */
export interface IStandingNotificationOptions {
  /** The action of its button. */
  action: Pick<Notification.IAction, 'label' | 'caption' | 'callback'>;
  /** Checks what is out of view and updates the notification. Called while there is something to show. */
  look: () => void;
}

/** A notification that a person closed stays closed until the count grows. */
export class StandingNotification implements IDisposable {
  constructor(private readonly _options: IStandingNotificationOptions) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether it may be shown at all. */
  get isEnabled(): boolean {
    return this._isEnabled;
  }

  set isEnabled(isEnabled: boolean) {
    this._isEnabled = isEnabled;
    this._update();
  }

  dispose(): void {
    this._isDisposed = true;
    this._update();
  }

  /**
   * Update the notification.
   *
   * @param count - The number of things out of view; 0 removes the notification.
   * @param message - Its text.
   */
  show(count: number, message: string): void {
    this._count = count;
    this._message = message;
    this._update();
  }

  private _update(): void {
    window.clearInterval(this._timer);
    window.clearInterval(this._avoiding);
    if (this._count === 0 || !this._isEnabled || this._isDisposed) {
      this._dismiss();
      return;
    }
    this._timer = window.setInterval(this._options.look, LOOK_INTERVAL);
    const isQuiet = this._isInTheWay();
    if (this._id !== null && Notification.manager.has(this._id)) {
      if (isQuiet !== this._isQuiet) {
        this._remove(this._id);
        this._emit(isQuiet);
      } else if (this._message !== this._shownMessage) {
        Notification.update({ id: this._id, message: this._message });
        this._updatedAt = performance.now();
      }
    } else if (this._count > this._shownCount) {
      this._emit(isQuiet);
    }
    if (!this._isQuiet) {
      this._avoiding = window.setInterval(() => {
        if (this._isInTheWay()) {
          this._update();
        }
      }, AVOID_INTERVAL);
    }
    this._shownCount = this._count;
    this._shownMessage = this._message;
  }

  private _emit(isQuiet: boolean): void {
    this._isQuiet = isQuiet;
    this._id = Notification.emit(this._message, 'warning', {
      // With 0, JupyterLab shows it only in its list.
      autoClose: isQuiet ? 0 : false,
      actions: [{ ...this._options.action, displayType: 'accent' }]
    });
  }

  /**
   * Whether a card waits where the notification would appear, or where it was shown above other notifications. A card whose
   * buttons are out of view is none that it would keep from being decided.
   */
  private _isInTheWay(): boolean {
    const { clientWidth, clientHeight } = document.documentElement;
    const toast = this._id === null ? null : document.getElementById(this._id);
    if (toast) {
      const { top } = toast.getBoundingClientRect();
      this._height = Math.max(this._height, clientHeight - top);
    }
    return [...document.querySelectorAll(WAITING_CARDS)].some(card => {
      if (!isRenderedCard(card)) {
        return false;
      }
      const buttons = card.querySelector('.jp-AgentBox-buttons');
      if (buttons && visibleHeight(buttons) === 0) {
        return false;
      }
      const { left, right, top, bottom } = card.getBoundingClientRect();
      return (
        right > clientWidth - CORNER.width &&
        left < clientWidth &&
        bottom > clientHeight - this._height &&
        top < clientHeight
      );
    });
  }

  private _dismiss(): void {
    this._shownCount = 0;
    this._height = CORNER.height;
    if (this._id !== null) {
      this._remove(this._id);
      this._id = null;
    }
  }

  private _remove(id: string): void {
    const wait = this._updatedAt + UPDATE_TIME - performance.now();
    if (wait > 0) {
      window.setTimeout(() => {
        Notification.dismiss(id);
      }, wait);
    } else {
      Notification.dismiss(id);
    }
  }

  private _avoiding = 0;
  private _count = 0;
  private _height = CORNER.height;
  private _id: string | null = null;
  private _isDisposed = false;
  private _isEnabled = true;
  private _isQuiet = false;
  private _message = '';
  private _shownCount = 0;
  private _shownMessage = '';
  private _timer = 0;
  private _updatedAt = -Infinity;
}
