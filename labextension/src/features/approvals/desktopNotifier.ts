/**
 * Desktop notifications for a person who is not looking at the page. They show a request, and never decide it.
 */
import { Notification as Toast } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { qualifiedName } from '../../api/protocol';
import type { IApproval } from '../../api/protocol';
import type { IApprovalModel, IOrigins } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';

/** Milliseconds before a request expires at which there is another notification. */
const SHORTLY = 120_000;

/** Milliseconds between two checks for requests that expire soon. */
const LOOK_INTERVAL = 5000;

/** All pages of a browser share one notification: a newer one replaces the older. */
const TAG = 'jupyter-agentbox';

/** The dependencies of `DesktopNotifier`. */
export interface IDesktopNotifierOptions {
  model: Pick<IApprovalModel, 'arrived' | 'changed' | 'now' | 'pending'>;
  origins: Pick<IOrigins, 'describe'>;
  /** Move the focus to a request. */
  show: (approval: IApproval) => void;
  /** Resolves when JupyterLab knows whether the person wants to be disturbed. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** The notification of requests, and its content. */
interface ITold {
  shown: Notification;
  approvals: readonly IApproval[];
  /** Whether it says that they expire soon. */
  isLast: boolean;
}

/** Keeps one notification for all pending requests. */
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
  get isQuiet(): boolean {
    return this._isQuiet;
  }

  set isQuiet(isQuiet: boolean) {
    this._isQuiet = isQuiet;
    this._offerPermission();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether the person wants notifications. Asks for the browser's permission, by a button that they press. */
  get isEnabled(): boolean {
    return this._isEnabled;
  }

  set isEnabled(isEnabled: boolean) {
    this._isEnabled = isEnabled;
    if (!isEnabled) {
      this._isOffered = false;
      this._close();
    }
    this._offerPermission();
  }

  dispose(): void {
    this._isDisposed = true;
    window.clearInterval(this._timer);
    Signal.clearData(this);
    this._close();
  }

  /** Offer to ask for the permission: once, and not to a person who does not want to be disturbed. */
  private _offerPermission(): void {
    void this._options.restored.then(() => {
      if (
        !this._isDisposed &&
        !this._isOffered &&
        !this._isQuiet &&
        this._isEnabled &&
        isSupported() &&
        permission() === 'default'
      ) {
        this._isOffered = true;
        this._emitOffer();
      }
    });
  }

  private _emitOffer(): void {
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
    for (const id of this._told.keys()) {
      if (!ids.has(id)) {
        this._told.delete(id);
      }
    }
    this._correct();
  }

  /** Remove from the notification what was decided meanwhile, or what waits longer than it says. */
  private _correct(): void {
    const { _ofRequests: present } = this;
    if (!present || present.shown !== this._shown) {
      return;
    }
    const { approvals, isLast } = present;
    const ends = endsOf(approvals);
    const rest = this._options.model.pending.filter(
      ({ id, expires_at }) =>
        ends.has(id) && !(isLast && ends.get(id) !== expires_at)
    );
    if (rest.length < approvals.length) {
      this._close();
      this._notify(rest, isLast, true);
    }
  }

  /** Notify once more of requests that expire soon, and again after their time was extended. */
  private _look(): void {
    const { model } = this._options;
    const soon = model.pending.filter(
      ({ id, expires_at, created_at }) =>
        expires_at !== null &&
        this._told.get(id) !== expires_at &&
        Date.parse(expires_at) - model.now() <= SHORTLY &&
        Date.parse(expires_at) - Date.parse(created_at) > SHORTLY
    );
    if (this._notify(soon, true)) {
      endsOf(soon).forEach((end, id) => this._told.set(id, end));
    }
  }

  /** Notify of requests; return whether the notification could be seen. */
  private _notify(
    approvals: readonly IApproval[],
    isLast: boolean,
    isSilent = false
  ): boolean {
    const [first] = approvals;
    const shown =
      first &&
      this.tell(
        this._title(approvals, isLast),
        approvals.length === 1 ? this._body(first) : '',
        () => {
          this._options.show(first);
        },
        isSilent
      );
    this._ofRequests = shown ? { shown, approvals, isLast } : null;
    return Boolean(shown);
  }

  /**
   * Show a notification, if the person wants them and is not at the page; a click on it comes back to the page.
   *
   * @param title - Its title.
   * @param body - The text below it.
   * @param show - Called on a click, to show what it is about.
   * @param isSilent - Whether it only says what another one said, and so makes no sound.
   */
  tell(
    title: string,
    body: string,
    show: () => void,
    isSilent = false
  ): Notification | null {
    const isNeeded = document.hidden || !document.hasFocus();
    if (
      !isNeeded ||
      !this._isEnabled ||
      this._isQuiet ||
      !isSupported() ||
      permission() !== 'granted'
    ) {
      return null;
    }
    this._close();
    const shown = new window.Notification(title, {
      body,
      tag: TAG,
      silent: isSilent
    });
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
          'A tool call expires in less than 2 minutes',
          '%1 tool calls expire in less than 2 minutes',
          count
        )
      : trans._n(
          'A tool call needs your approval',
          '%1 tool calls need your approval',
          count
        );
  }

  /** Untrusted names, short and without markup, because it is unknown how the desktop renders them. */
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
  private _isOffered = false;
  private _isQuiet = false;
  private _ofRequests: ITold | null = null;
  private _shown: Notification | null = null;
  private readonly _timer: number;
  /** The requests whose expiry was notified, with its time. */
  private readonly _told = new Map<string, string | null>();
}

/** The expiry time of each request, by its id. */
function endsOf(approvals: readonly IApproval[]): Map<string, string | null> {
  return new Map(approvals.map(({ id, expires_at }) => [id, expires_at]));
}

function isSupported(): boolean {
  return typeof window.Notification === 'function';
}

function permission(): NotificationPermission {
  return window.Notification.permission;
}
