/**
 * Notifications of the desktop for a person who is not at the page. They show a request, and never decide it.
 */
import { Notification as Toast } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { qualifiedName } from '../../api/protocol';
import type { IApproval } from '../../api/protocol';
import type { IApprovalModel, IOrigins } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';

/** Milliseconds before its end at which a request is told of again. */
const SHORTLY = 120_000;

/** Milliseconds between two looks at what ends shortly. */
const LOOK_INTERVAL = 5000;

/** All pages of a browser share one notification: the newer one takes the place of the older. */
const TAG = 'jupyter-agentbox';

/** What `DesktopNotifier` needs. */
export interface IDesktopNotifierOptions {
  model: Pick<IApprovalModel, 'arrived' | 'changed' | 'now' | 'pending'>;
  origins: Pick<IOrigins, 'describe'>;
  /** Move the focus to a request. */
  show: (approval: IApproval) => void;
  trans: TranslationBundle;
}

/** Keeps one notification for all requests that wait. */
export class DesktopNotifier implements IDisposable {
  constructor(private readonly _options: IDesktopNotifierOptions) {
    const { model } = _options;
    model.arrived.connect(this._onArrived, this);
    model.changed.connect(this._onChanged, this);
    this._timer = window.setInterval(() => {
      this._look();
    }, LOOK_INTERVAL);
  }

  /** Whether the person does not want to be disturbed. */
  isQuiet = false;

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether the person wants notifications. Asks for the browser's permission, by a button that they press. */
  get isEnabled(): boolean {
    return this._isEnabled;
  }

  set isEnabled(isEnabled: boolean) {
    const isNews = isEnabled && !this._isEnabled;
    this._isEnabled = isEnabled;
    if (!isEnabled) {
      this._close();
    } else if (isNews && isSupported() && permission() === 'default') {
      this._offerPermission();
    }
  }

  dispose(): void {
    this._isDisposed = true;
    window.clearInterval(this._timer);
    Signal.clearData(this);
    this._close();
  }

  private _offerPermission(): void {
    const { trans } = this._options;
    Toast.emit(
      trans.__('Desktop notifications need the permission of your browser.'),
      'info',
      {
        autoClose: false,
        actions: [
          {
            label: trans.__('Ask for it'),
            displayType: 'accent',
            callback: () => {
              void window.Notification.requestPermission();
            }
          }
        ]
      }
    );
  }

  private _onArrived(_: unknown, arrived: readonly IApproval[]): void {
    if (arrived.length > 0) {
      this._notify(this._options.model.pending, false);
    }
  }

  private _onChanged(): void {
    const { pending } = this._options.model;
    const ids = new Set(pending.map(({ id }) => id));
    for (const id of this._told) {
      if (!ids.has(id)) {
        this._told.delete(id);
      }
    }
    if (pending.length === 0) {
      this._ofRequests?.close();
      this._ofRequests = null;
    }
  }

  /** Tell once more of what ends shortly. */
  private _look(): void {
    const { model } = this._options;
    const soon = model.pending.filter(
      ({ id, expires_at, created_at }) =>
        expires_at !== null &&
        !this._told.has(id) &&
        Date.parse(expires_at) - model.now() <= SHORTLY &&
        Date.parse(expires_at) - Date.parse(created_at) > SHORTLY
    );
    soon.forEach(({ id }) => this._told.add(id));
    if (soon.length > 0) {
      this._notify(soon, true);
    }
  }

  private _notify(approvals: readonly IApproval[], isLast: boolean): void {
    const [first] = approvals;
    if (first) {
      this._ofRequests = this.tell(
        this._title(approvals, isLast),
        approvals.length === 1 ? this._body(first) : '',
        () => {
          this._options.show(first);
        }
      );
    }
  }

  /** Show a notification, if the person wants them and is not at the page; a click on it comes back to the page. */
  tell(title: string, body: string, show: () => void): Notification | null {
    const isNeeded = document.hidden || !document.hasFocus();
    if (
      !isNeeded ||
      !this._isEnabled ||
      this.isQuiet ||
      !isSupported() ||
      permission() !== 'granted'
    ) {
      return null;
    }
    this._close();
    const shown = new window.Notification(title, { body, tag: TAG });
    shown.onclick = () => {
      window.focus();
      shown.close();
      show();
    };
    this._shown = shown;
    return shown;
  }

  private _title(approvals: readonly IApproval[], isLast: boolean): string {
    const { trans } = this._options;
    const count = approvals.length;
    return isLast
      ? trans._n(
          'A tool call expires in 2 minutes',
          '%1 tool calls expire in 2 minutes',
          count
        )
      : trans._n(
          'A tool call needs your approval',
          '%1 tool calls need your approval',
          count
        );
  }

  /** Untrusted names, short and plain: what the desktop makes of them is not known. */
  private _body(approval: IApproval): string {
    const { origins, trans } = this._options;
    return trans.__(
      '%1 (%2)',
      label(qualifiedName(approval.call), 60),
      label(origins.describe(approval), 60)
    );
  }

  private _close(): void {
    this._shown?.close();
    this._shown = null;
  }

  private _isDisposed = false;
  private _isEnabled = false;
  private _ofRequests: Notification | null = null;
  private _shown: Notification | null = null;
  private readonly _timer: number;
  /** The requests of whose end was told. */
  private readonly _told = new Set<string>();
}

function isSupported(): boolean {
  return typeof window.Notification === 'function';
}

function permission(): NotificationPermission {
  return window.Notification.permission;
}
