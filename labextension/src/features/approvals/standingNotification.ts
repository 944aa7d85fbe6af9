/**
 * One notification in the page for everything of a kind that is out of view: kept up to date, and gone when nothing is.
 */
import { Notification } from '@jupyterlab/apputils';
import type { IDisposable } from '@lumino/disposable';

/** Milliseconds that a cell has to show its card before it counts as out of view. */
export const RENDER_TIME = 400;

/** Milliseconds between two looks at whether something came into view. */
export const LOOK_INTERVAL = 1000;

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
    if (this._count === 0 || !this._isEnabled || this._isDisposed) {
      this._dismiss();
      return;
    }
    this._timer = window.setInterval(this._options.look, LOOK_INTERVAL);
    if (this._id !== null && Notification.manager.has(this._id)) {
      if (this._message !== this._shownMessage) {
        Notification.update({ id: this._id, message: this._message });
      }
    } else if (this._count > this._shownCount) {
      this._id = Notification.emit(this._message, 'warning', {
        autoClose: false,
        actions: [{ ...this._options.action, displayType: 'accent' }]
      });
    }
    this._shownCount = this._count;
    this._shownMessage = this._message;
  }

  private _dismiss(): void {
    this._shownCount = 0;
    if (this._id !== null) {
      Notification.dismiss(this._id);
      this._id = null;
    }
  }

  private _count = 0;
  private _id: string | null = null;
  private _isDisposed = false;
  private _isEnabled = true;
  private _message = '';
  private _shownCount = 0;
  private _shownMessage = '';
  private _timer = 0;
}
