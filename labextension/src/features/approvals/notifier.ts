/**
 * Notifies of requests that are out of view: one notification, however many they are.
 */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';

import { qualifiedName } from '../../api/protocol';
import type { IApproval } from '../../api/protocol';
import type {
  IApprovalModel,
  IApprovalPanel,
  IOrigins
} from '../../internalTokens';
import { label } from '../../ui/text/visibleText';

/** Milliseconds that a cell has to show its card before it counts as out of view. */
export const RENDER_TIME = 400;

/** Milliseconds between two looks at whether a cell came into view. */
export const LOOK_INTERVAL = 1000;

/** What `Notifier` needs. */
export interface INotifierOptions {
  model: IApprovalModel;
  origins: IOrigins;
  panel: IApprovalPanel;
  /** Until the page has its notebooks back, everything is out of view. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** Keeps one notification for all requests that wait out of view. */
export class Notifier implements IDisposable {
  constructor(private readonly _options: INotifierOptions) {
    this._options.model.arrived.connect(this._onArrived, this);
    this._options.model.settled.connect(this._onSettled, this);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether to notify at all. */
  get isEnabled(): boolean {
    return this._isEnabled;
  }

  set isEnabled(isEnabled: boolean) {
    this._isEnabled = isEnabled;
    this._show();
  }

  dispose(): void {
    this._isDisposed = true;
    window.clearInterval(this._timer);
    this._options.model.arrived.disconnect(this._onArrived, this);
    this._options.model.settled.disconnect(this._onSettled, this);
    this._dismiss();
  }

  private _onArrived(_: unknown, arrived: readonly IApproval[]): void {
    void this._options.restored.then(() => {
      window.setTimeout(() => {
        this._add(arrived);
      }, RENDER_TIME);
    });
  }

  private _add(arrived: readonly IApproval[]): void {
    const outOfView = arrived
      .filter(({ id }) => this._isPending(id))
      .filter(approval => !this._isInView(approval));
    for (const approval of outOfView) {
      this._waiting.set(approval.id, approval);
    }
    if (outOfView.length > 0) {
      this._show();
    }
  }

  /** What a person has come to see needs no notification any more; nor what the server lost. */
  private _look(): void {
    const before = this._waiting.size;
    for (const [id, approval] of this._waiting) {
      if (!this._isPending(id) || this._isInView(approval)) {
        this._waiting.delete(id);
      }
    }
    if (this._waiting.size < before) {
      this._reduce();
    }
  }

  private _isPending(id: string): boolean {
    return this._options.model.get(id).approval?.status === 'pending';
  }

  /** The panel has them all, and a notification would lie over its buttons. */
  private _isInView(approval: IApproval): boolean {
    const { origins, panel } = this._options;
    return panel.isVisible || origins.isInView(approval);
  }

  private _onSettled(_: unknown, approval: IApproval): void {
    if (this._waiting.delete(approval.id)) {
      this._reduce();
    }
  }

  /** Count fewer, unless the person closed the notification: then it stays closed. */
  private _reduce(): void {
    const isShown = this._id !== null && Notification.manager.has(this._id);
    if (this._waiting.size === 0 || isShown) {
      this._show();
    }
  }

  private _show(): void {
    window.clearInterval(this._timer);
    if (this._waiting.size === 0 || !this._isEnabled || this._isDisposed) {
      this._dismiss();
      return;
    }
    this._timer = window.setInterval(() => {
      this._look();
    }, LOOK_INTERVAL);
    const message = this._message();
    const options = { autoClose: false as const, actions: [this._action()] };
    if (this._id !== null && Notification.manager.has(this._id)) {
      Notification.update({ id: this._id, message, ...options });
    } else {
      this._id = Notification.emit(message, 'warning', options);
    }
  }

  private _message(): string {
    const { origins, trans } = this._options;
    const [first] = this._waiting.values();
    const count = this._waiting.size;
    return count === 1
      ? trans.__(
          '%1 needs your approval (%2)',
          label(qualifiedName(first.call), 60),
          label(origins.describe(first), 60)
        )
      : trans._n(
          '%1 tool call needs your approval',
          '%1 tool calls need your approval',
          count
        );
  }

  private _action(): Notification.IAction {
    const { trans } = this._options;
    return {
      label: trans.__('Show'),
      caption: trans.__('Show the pending requests'),
      displayType: 'accent',
      callback: () => {
        const [first, ...others] = this._waiting.values();
        this._waiting.clear();
        void this._reveal(others.length === 0 ? first : undefined);
      }
    };
  }

  /** Go to the one request's card; where that is not to be seen, to the panel. */
  private async _reveal(only: IApproval | undefined): Promise<void> {
    const { origins, panel } = this._options;
    const isShown = only !== undefined && (await origins.reveal(only));
    if (!isShown) {
      panel.open();
    }
  }

  private _dismiss(): void {
    if (this._id !== null) {
      Notification.dismiss(this._id);
      this._id = null;
    }
  }

  private _id: string | null = null;
  private _isDisposed = false;
  private _isEnabled = true;
  private _timer = 0;
  private readonly _waiting = new Map<string, IApproval>();
}
