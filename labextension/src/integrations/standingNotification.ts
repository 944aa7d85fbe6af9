/**
 * One notification in the page for everything of a kind that is out of view: kept up to date, and gone when nothing is.
 *
 * What lies over a card disables its buttons. So where a card waits in the corner in which notifications are shown, this one
 * is only in the list that JupyterLab keeps of them, and comes out when the corner is free.
 */
import { Notification } from '@jupyterlab/apputils';
import type { IDisposable } from '@lumino/disposable';

/** Milliseconds that a cell has to show its card before it counts as out of view. */
export const RENDER_TIME = 400;

/** Milliseconds between two looks at whether something came into view. */
export const LOOK_INTERVAL = 1000;

/** Milliseconds between two looks at whether it is in the way: less than a card is covered before it says so. */
export const AVOID_INTERVAL = 250;

/** Cards that a person may be about to answer. */
const WAITING_CARDS =
  '.jp-AgentBox-card[data-status="pending"], .jp-AgentBox-card.jp-mod-question';

/** Pixels from the right and the lower edge of the window in which JupyterLab shows a notification of three lines. */
const CORNER = { width: 340, height: 170 };

/** What `StandingNotification` needs. */
export interface IStandingNotificationOptions {
  /** What its button does. */
  action: Pick<Notification.IAction, 'label' | 'caption' | 'callback'>;
  /** Looks again at what is out of view, and then says what is to be shown. Called while something is to be. */
  look: () => void;
}

/** A notification that a person closed stays closed until it would speak of more. */
export class StandingNotification implements IDisposable {
  constructor(private readonly _options: IStandingNotificationOptions) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether it is shown at all. */
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
   * Say what it speaks of from now on.
   *
   * @param count - Of how many things; none takes it away.
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
        Notification.dismiss(this._id);
        this._emit(isQuiet);
      } else if (this._message !== this._shownMessage) {
        Notification.update({ id: this._id, message: this._message });
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
      // By 0, JupyterLab has it in its list only.
      autoClose: isQuiet ? 0 : false,
      actions: [{ ...this._options.action, displayType: 'accent' }]
    });
  }

  /** Whether a card waits where the notification would be; or where it was, higher up because of others. */
  private _isInTheWay(): boolean {
    const { clientWidth, clientHeight } = document.documentElement;
    const toast = this._id === null ? null : document.getElementById(this._id);
    if (toast) {
      const { top } = toast.getBoundingClientRect();
      this._height = Math.max(this._height, clientHeight - top);
    }
    return [...document.querySelectorAll(WAITING_CARDS)].some(card => {
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
      Notification.dismiss(this._id);
      this._id = null;
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
}
