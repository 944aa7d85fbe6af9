/**
 * Notifies of pending requests at the Hub service while the panel is closed: one notification for all.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IHubRequest } from '../../api/protocol';
import type { IApprovalPanel, IHubRequestsModel } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';
import type { DesktopNotifier } from './desktopNotifier';
import { StandingNotifier } from '../../integrations/standingNotifier';

/** The dependencies of `HubRequestNotifier`. */
export interface IHubRequestNotifierOptions {
  hub: Pick<IHubRequestsModel, 'changed' | 'list'>;
  panel: Pick<IApprovalPanel, 'isVisible' | 'open'>;
  desktop: Pick<DesktopNotifier, 'tell'>;
  /** Until the layout is restored, the panel is not open yet. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** Keeps one notification for all requests that a person has not seen yet. */
export class HubRequestNotifier extends StandingNotifier {
  constructor(private readonly _options: IHubRequestNotifierOptions) {
    const { hub, panel, trans } = _options;
    super(trans, {
      caption: trans.__('Show what waits at the Hub'),
      callback: () => {
        panel.open();
      }
    });
    void _options.restored.then(() => {
      if (!this.isDisposed) {
        hub.changed.connect(this._follow, this);
        this._follow();
      }
    });
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
    this.look();
  }

  /** What a person has seen needs no notification any more. */
  protected look(): void {
    if (this._options.panel.isVisible) {
      this._unseen.clear();
    }
    const unseen = [...this._unseen.values()];
    this.notification.show(unseen.length, this._message(unseen));
  }

  private _message(of: readonly IHubRequest[]): string {
    const { trans } = this._options;
    const [first] = of;
    return of.length === 1
      ? trans.__(
          '%1 asks for your approval at the Hub (%2)',
          // JupyterLab shows 140 characters of a message.
          label(first.asked_by, 43),
          label(`${first.server}.${first.tool}`, 60)
        )
      : trans._n(
          '%1 request waits for you at the Hub',
          '%1 requests wait for you at the Hub',
          of.length
        );
  }

  private readonly _known = new Map<string, IHubRequest>();
  private readonly _unseen = new Map<string, IHubRequest>();
}
