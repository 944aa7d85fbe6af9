/**
 * Notifies of requests that wait at the Hub service while the panel is closed: one notification for all.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IHubRequest } from '../../api/protocol';
import type { IApprovalPanel, IHubRequestsModel } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';
import type { DesktopNotifier } from './desktopNotifier';
import { StandingNotification } from '../../integrations/standingNotification';

/** What `HubRequestNotifier` needs. */
export interface IHubRequestNotifierOptions {
  hub: Pick<IHubRequestsModel, 'changed' | 'list'>;
  panel: Pick<IApprovalPanel, 'isVisible' | 'open'>;
  desktop: Pick<DesktopNotifier, 'tell'>;
  /** Until the page is as it was left, the panel is not yet open. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** Keeps one notification for all requests that a person has not come to see. */
export class HubRequestNotifier implements IDisposable {
  constructor(private readonly _options: IHubRequestNotifierOptions) {
    const { hub, panel, trans } = _options;
    this._shown = new StandingNotification({
      action: {
        label: trans.__('Show'),
        caption: trans.__('Show what waits at the Hub'),
        callback: () => {
          panel.open();
        }
      },
      look: () => {
        this._look();
      }
    });
    void _options.restored.then(() => {
      if (!this._isDisposed) {
        hub.changed.connect(this._follow, this);
        this._follow();
      }
    });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether to notify in the page at all. */
  get isEnabled(): boolean {
    return this._shown.isEnabled;
  }

  set isEnabled(isEnabled: boolean) {
    this._shown.isEnabled = isEnabled;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
    this._shown.dispose();
  }

  private _follow(): void {
    const { desktop, hub, panel } = this._options;
    const present = new Map(hub.list.requests.map(one => [one.id, one]));
    for (const ids of [this._known, this._unseen]) {
      for (const id of ids.keys()) {
        if (!present.has(id)) {
          ids.delete(id);
        }
      }
    }
    const arrived = [...present.values()].filter(
      ({ id }) => !this._known.has(id)
    );
    for (const request of arrived) {
      this._known.set(request.id, request);
      this._unseen.set(request.id, request);
    }
    if (arrived.length > 0) {
      desktop.tell(this._message(arrived), '', () => {
        panel.open();
      });
    }
    this._look();
  }

  /** What a person has come to see needs no notification any more. */
  private _look(): void {
    if (this._options.panel.isVisible) {
      this._unseen.clear();
    }
    const unseen = [...this._unseen.values()];
    this._shown.show(unseen.length, this._message(unseen));
  }

  private _message(of: readonly IHubRequest[]): string {
    const { trans } = this._options;
    const [first] = of;
    return of.length === 1
      ? trans.__(
          '%1 asks for your approval at the Hub (%2)',
          label(first.asked_by, 60),
          label(`${first.server}.${first.tool}`, 60)
        )
      : trans._n(
          '%1 request waits for you at the Hub',
          '%1 requests wait for you at the Hub',
          of.length
        );
  }

  private _isDisposed = false;
  private readonly _known = new Map<string, IHubRequest>();
  private readonly _shown: StandingNotification;
  private readonly _unseen = new Map<string, IHubRequest>();
}
